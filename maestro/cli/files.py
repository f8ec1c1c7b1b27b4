"""Where a command left its files, in lines that can be copied however long the paths are."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

_COLUMN = 11


def tell_files(console: Console, **files: Path | str) -> None:
    """One line for each: its name (``_`` stands for a blank), then the path as it is, not wrapped."""
    for name, path in files.items():
        line = f"{name.replace('_', ' '):<{_COLUMN}} {path}"
        console.print(line, soft_wrap=True, markup=False, highlight=False)
