"""Tables of the terminal in which nothing is cut off: what is too wide goes on in the next line."""

from __future__ import annotations

from typing import Any

from rich.table import Table


def whole_table(*titles: str, **options: Any) -> Table:
    """A table of these columns; ``options`` are rich's."""
    table = Table(**options)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table
