"""A table ready to be printed: columns, lines of cells, and what stands below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.tables.cell import EMPTY, Cell
from eval.tables.measure import Measure


@dataclass(frozen=True)
class Column:
    """``key``: a benchmark's name, "average", "micro" or "delta"."""

    key: str
    title: str
    short: str


@dataclass(frozen=True)
class Line:
    """One line. ``section``: the heading that it stands under, empty for none."""

    section: str
    label: str
    row: str | None
    """Key of the paper's row, of the paper's lines and of those that stand for it."""
    measure: Measure
    cells: Mapping[str, Cell]
    paper: bool = False
    reference: bool = False
    """Knows the answers or the families: never the best of a column."""
    computed: bool = False
    """Made from other lines."""

    def cell(self, column: Column) -> Cell:
        return self.cells.get(column.key, EMPTY)


@dataclass(frozen=True)
class Table:
    """One table of the paper with what was measured."""

    number: int
    title: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    notes: Sequence[str]
    """What the numbers are, and over how many questions."""
    missing: Sequence[str]
    """Which runs would fill the dashes."""

    @property
    def heading(self) -> str:
        return f"Table {self.number}: {self.title}"

    @property
    def names_measures(self) -> bool:
        """Whether a line has to say what it measures; accuracy alone goes without saying."""
        return any(line.measure.name != "accuracy" for line in self.lines)
