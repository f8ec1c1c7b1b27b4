"""Tables as Markdown, with their notes below."""

from __future__ import annotations

from collections.abc import Sequence

from eval.tables.cell import Cell
from eval.tables.escape import markdown
from eval.tables.measure import Measure
from eval.tables.table import Line, Table


def to_markdown(tables: Sequence[Table], *, ci: bool = False) -> str:
    """One document. ``ci``: 95 % intervals beside the values that have one."""
    return "\n".join(_table(one, ci) for one in tables)


def _table(table: Table, ci: bool) -> str:
    heads = ["", *(["measure"] if table.names_measures else []), *(markdown(one.title) for one in table.columns)]
    lines = [f"## {markdown(table.heading)}", "", _row(heads), _row(["---", *["---:"] * (len(heads) - 1)])]
    section = ""
    for line in table.lines:
        if line.section != section:
            section = line.section
            lines.append(_row([f"*{markdown(section)}*", *[""] * (len(heads) - 1)]))
        lines.append(_row(_cells(table, line, ci)))
    lines += ["", *(f"- {markdown(note)}" for note in table.notes)]
    if table.missing:
        lines += ["", "What would fill the dashes:", "", *(f"- {markdown(one)}" for one in table.missing)]
    return "\n".join(lines) + "\n"


def _cells(table: Table, line: Line, ci: bool) -> list[str]:
    label = markdown(line.label)
    measure = [markdown(line.measure.label)] if table.names_measures else []
    return [label, *measure, *(_value(line.cell(column), line.measure, ci) for column in table.columns)]


def _value(cell: Cell, measure: Measure, ci: bool) -> str:
    text = cell.text(measure)
    text = f"**{text}**" if cell.best else text
    interval = cell.interval(measure) if ci else ""
    return f"{text} ({interval})" if interval else text


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
