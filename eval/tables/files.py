"""The files that tables are written to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from eval.tables.latex import to_latex
from eval.tables.markdown import to_markdown
from eval.tables.table import Table
from eval.tables.tidy import to_csv
from eval.whole_file import write_whole

FORMATS = ("md", "latex", "csv")


def write_tables(
    tables: Sequence[Table], folder: Path, formats: Collection[str], *, ci: bool = False, left_out: Iterable[int] = ()
) -> list[Path]:
    """Write ``tables.md``, ``table-N.tex`` for each table, and ``tables.csv``; those of ``formats``. Raises OSError.

    Args:
        left_out: numbers of tables that were to be made and have no content; files of them from an earlier call go, or
            they would pass for the present runs'.
    """
    texts: dict[str, str] = {}
    if "md" in formats:
        texts["tables.md"] = to_markdown(tables, ci=ci)
    if "latex" in formats:
        texts |= {f"table-{table.number}.tex": to_latex(table, ci=ci) for table in tables}
    if "csv" in formats:
        texts["tables.csv"] = to_csv(tables)
    if "latex" in formats:
        for number in left_out:
            (folder / f"table-{number}.tex").unlink(missing_ok=True)
    return [write_whole(folder / name, text) for name, text in texts.items()]
