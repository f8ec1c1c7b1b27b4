"""The paper's tables as data (`paper.yaml`): their columns, rows, and the figures that the paper's text states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from eval.tables.measure import measure_named
from eval.yaml_config import Strict, load_config
from registry.errors import UserFault
from registry.names import normalise

FILE = Path(__file__).with_name("paper.yaml")
AVERAGE, DELTA, MICRO = "average", "delta", "micro"


class PaperBenchmark(Strict):
    """A column. ``title`` is printed in files, ``short`` in a terminal."""

    name: str
    title: str
    short: str
    domain: Literal["in-domain", "out-of-domain", "specialized"]


class PaperRow(Strict):
    """A method that a table has a row for."""

    label: str
    aliases: tuple[str, ...] = ()
    """Other names by which an arm, a served model or ``--row`` means this row."""
    group: str = ""
    fill: str | None = None
    """Which arm of a run fills the row; none for methods that are not ours to run."""


class Figure(Strict):
    """One figure that the text states: percent, seconds or tokens."""

    row: str
    measure: str = "accuracy"
    at: str
    """A benchmark, ``average`` (over the table's benchmarks) or ``delta`` (of that average, to ``delta_to``)."""
    value: float
    cited: str
    """The section."""


class PaperTable(Strict):
    """One table."""

    number: int
    title: str
    benchmarks: tuple[str, ...]
    measures: tuple[str, ...]
    """See ``eval.tables.measure``; ``*`` stands for every k that a run or the paper has."""
    by: Literal["row", "measure"] = "row"
    """What the lines are grouped by."""
    rows: tuple[str, ...]
    open: Literal["none", "policies", "all"] = "none"
    """Which rows of your own may stand beside the paper's; ``policies``: those that sample a policy."""
    gain_of: str | None = None
    """The row whose distance to the best other one is shown."""
    delta_to: str | None = None
    """The row to which a column shows each average's distance."""
    notes: tuple[str, ...] = ()
    figures: tuple[Figure, ...]

    @property
    def grouped(self) -> bool:
        """Whether its methods stand under headings: where there are many."""
        return len(self.rows) > 10 and self.by == "row"

    def figure(self, row: str, measure: str, at: str) -> Figure | None:
        """The figure of a cell, if the text states it."""
        return next((one for one in self.figures if (one.row, one.measure, one.at) == (row, measure, at)), None)


class Paper(Strict):
    """All of them."""

    benchmarks: tuple[PaperBenchmark, ...]
    rows: dict[str, PaperRow]
    tables: tuple[PaperTable, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits_together(self) -> Paper:
        for fault in self._faults():
            raise ValueError(fault)
        return self

    def _faults(self) -> Iterator[str]:
        known = {one.name for one in self.benchmarks}
        for table in self.tables:
            named = [*table.rows, *filter(None, (table.gain_of, table.delta_to))]
            yield from (f"table {table.number}: unknown row {name!r}" for name in named if name not in self.rows)
            yield from (f"table {table.number}: unknown benchmark {b!r}" for b in table.benchmarks if b not in known)
            for one in table.figures:
                measure_named(one.measure)
                places = {*table.benchmarks, AVERAGE, *([DELTA] if table.delta_to else [])}
                if one.row not in table.rows or one.at not in places:
                    yield f"table {table.number}: no cell {one.row!r}, {one.at!r}"

    def benchmark(self, name: str) -> PaperBenchmark:
        """The column of that name. Raises KeyError."""
        return {one.name: one for one in self.benchmarks}[name]

    def row_of(self, name: str) -> str | None:
        """The key of the row that a name stands for: its key, label or an alias, up to case and separators."""
        wanted = normalise(name)
        for key, row in self.rows.items():
            if wanted in {normalise(one) for one in (key, row.label, *row.aliases)}:
                return key
        return None

    def choose(self, numbers: Sequence[int]) -> tuple[PaperTable, ...]:
        """The tables of these numbers, in the paper's order; all for none. Raises UserFault for an unknown one."""
        known = {one.number for one in self.tables}
        for number in numbers:
            if number not in known:
                raise UserFault(f"no table {number} can be made", fix=f"there are {', '.join(map(str, sorted(known)))}")
        return tuple(one for one in self.tables if not numbers or one.number in numbers)


@lru_cache(maxsize=1)
def load_paper() -> Paper:
    """The paper's tables. Raises UserFault for a faulty file."""
    return load_config(Paper, FILE)
