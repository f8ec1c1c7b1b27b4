"""Tables as records for other programs: one for each cell, at full precision."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from eval.tables.escape import spreadsheet
from eval.tables.table import Column, Line, Table

FIELDS: tuple[str, ...] = (
    "table", "section", "row", "role", "source", "measure", "column", "value", "sd", "runs", "ci95_low", "ci95_high",
    "n", "errors", "complete", "covered", "of", "best", "cited",
)  # fmt: skip


def records(table: Table) -> Iterator[dict[str, Any]]:
    """Every cell of the measured lines, those without a value too (null), and the paper's stated ones."""
    for line in table.lines:
        for column in table.columns:
            if not line.paper or line.cell(column).value is not None:
                yield _record(table, line, column)


def to_json(table: Table) -> dict[str, Any]:
    """The table as data."""
    return {
        "table": table.number,
        "title": table.title,
        "columns": [{"key": one.key, "title": one.title} for one in table.columns],
        "cells": list(records(table)),
        "notes": list(table.notes),
        "missing": list(table.missing),
    }


def to_csv(tables: Sequence[Table]) -> str:
    """All tables in one sheet; a cell without a value is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writeheader()
    for table in tables:
        for record in records(table):
            writer.writerow({key: spreadsheet(one) if isinstance(one, str) else one for key, one in record.items()})
    return out.getvalue()


def _record(table: Table, line: Line, column: Column) -> dict[str, Any]:
    cell = line.cell(column)
    low, high = cell.ci95 or (None, None)
    have, of = cell.covered or (None, None)
    measured = cell.value is not None and not line.paper and not line.computed
    return {
        "table": table.number,
        "section": line.section,
        "row": line.label,
        "role": line.row,
        "source": "paper" if line.paper else "computed" if line.computed else "measured",
        "measure": line.measure.name,
        "column": column.key,
        "value": cell.value,
        "sd": cell.sd,
        "runs": cell.runs if measured else None,
        "ci95_low": low,
        "ci95_high": high,
        "n": cell.n if measured and cell.n else None,
        "errors": cell.errors if measured else None,
        "complete": not cell.incomplete if measured else None,
        "covered": have,
        "of": of,
        "best": cell.best,
        "cited": cell.cited,
    }
