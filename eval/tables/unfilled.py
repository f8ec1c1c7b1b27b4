"""Tables that the given runs have no arm for: told in one line each, not printed."""

from __future__ import annotations

from eval.tables.paper import Paper, PaperTable
from eval.tables.table import Table


def unfilled(paper: Paper, spec: PaperTable, table: Table) -> str | None:
    """What would fill a table in which only the paper's lines stand, or nothing to be compared with its `delta_to`
    row; None for a table that holds more."""
    base = spec.delta_to if spec.open == "none" else None
    if any(not line.paper and (base is None or line.row != base) for line in table.lines):
        return None
    rows = [paper.rows[key] for key in spec.rows if key != base]
    needed = "; ".join(f"{row.label}: {row.fill}" for row in rows if row.fill is not None)
    return f"{table.heading}: left out, no arm of these runs fills it. What would fill it: {needed}."
