"""The files that tables are written to."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from eval.tables.latex import to_latex
from eval.tables.markdown import to_markdown
from eval.tables.table import Table
from eval.tables.tidy import to_csv

FORMATS = ("md", "latex", "csv")


def write_tables(tables: Sequence[Table], folder: Path, formats: Collection[str], *, ci: bool = False) -> list[Path]:
    """Write ``tables.md``, ``table-N.tex`` for each table, and ``tables.csv``; those of ``formats``. Raises OSError."""
    texts: dict[str, str] = {}
    if "md" in formats:
        texts["tables.md"] = to_markdown(tables, ci=ci)
    if "latex" in formats:
        texts |= {f"table-{table.number}.tex": to_latex(table, ci=ci) for table in tables}
    if "csv" in formats:
        texts["tables.csv"] = to_csv(tables)
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder / name, text) for name, text in texts.items()]


def _write(path: Path, text: str) -> Path:
    scratch = path.with_name(path.name + ".part")
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, path)  # a reader never sees half a file
    return path
