"""One figure of a table, with what is needed to trust it: spread over runs, interval, n, errors, completeness."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eval.tables.measure import Measure, Pair, interval_of, shown, value_of
from eval.tables.measured import FILE, Measured
from registry.errors import UserFault

DASH = "–"
INCOMPLETE, CACHED = "†", "‡"


@dataclass(frozen=True)
class Cell:
    """``value`` in the table's unit (percent, seconds, tokens); None is shown as a dash, never as 0."""

    value: float | None = None
    sd: float | None = None
    """Sample standard deviation over ``runs`` runs, for two or more."""
    runs: int = 0
    ci95: Pair | None = None
    """Of a single run."""
    n: int = 0
    """Questions; of several runs the smallest number."""
    errors: int = 0
    incomplete: bool = False
    cached: bool = False
    """A latency to which a call cache contributed."""
    covered: tuple[int, int] | None = None
    """Of an average over fewer benchmarks than the table has: how many, and of how many."""
    cited: str | None = None
    """The paper's section, for a figure of the paper."""
    best: bool = False
    signed: bool = False
    by_seed: tuple[tuple[int, float], ...] = ()
    """The value of each seed, where every run has one of its own."""

    def text(self, measure: Measure) -> str:
        """As printed: value, spread over runs, coverage and the mark of an incomplete run."""
        if self.value is None:
            return DASH
        text = shown(self.value, measure, signed=self.signed)
        if self.sd is not None:
            text += f" ± {self.sd:.{measure.places}f}"
        if self.covered is not None:
            text += f" ({self.covered[0]}/{self.covered[1]})"
        return text + (INCOMPLETE if self.incomplete else "") + (CACHED if self.cached else "")

    def interval(self, measure: Measure) -> str:
        """The interval as printed; empty where there is none."""
        if self.ci95 is None:
            return ""
        return "–".join(f"{bound:.{measure.places}f}" for bound in self.ci95)


EMPTY = Cell()


def cell_of(found: Sequence[Measured], measure: Measure) -> Cell:
    """The cell of one row and benchmark: the mean over its runs that measured this.

    Raises UserFault where a run's results.json holds something else than a number.
    """
    pairs = [(one, value) for one in found if (value := _read(one, measure)[0]) is not None]
    if not pairs:
        return EMPTY
    values = [value for _, value in pairs]
    seeds = [one.seed for one, _ in pairs]
    known = [seed for seed in seeds if seed is not None]
    distinct = len(set(known)) == len(pairs)
    return Cell(
        value=math.fsum(values) / len(values),
        sd=statistics.stdev(values) if len(values) > 1 else None,
        runs=len(values),
        ci95=_read(pairs[0][0], measure)[1] if len(values) == 1 else None,
        n=min(one.n for one, _ in pairs),
        errors=sum(one.errors for one, _ in pairs),
        incomplete=any(not one.complete for one, _ in pairs),
        cached=measure.name == "latency" and any(one.cached for one, _ in pairs),
        by_seed=tuple(sorted(zip(known, values, strict=True))) if distinct else (),
    )


def average(cells: Mapping[str, Cell], wanted: Sequence[str], *, micro: bool = False) -> Cell:
    """Over the benchmarks ``wanted`` that have a value: each counting the same (macro, as the paper averages), or by
    its questions (micro). Over fewer than all of them the cell says so. The spread is over the averages of single
    seeds, where every benchmark was run with the same ones."""
    have = [name for name in wanted if (cell := cells.get(name)) is not None and cell.value is not None]
    if not have:
        return EMPTY
    weights = [float(cells[name].n) if micro else 1.0 for name in have]
    if not sum(weights):
        return EMPTY
    seeds = [dict(cells[name].by_seed) for name in have]
    shared = sorted(seeds[0]) if seeds[0] and all(one.keys() == seeds[0].keys() for one in seeds) else []
    each = [_mean([one[seed] for one in seeds], weights) for seed in shared]
    return Cell(
        value=_mean([cells[name].value or 0.0 for name in have], weights),
        sd=statistics.stdev(each) if len(each) > 1 else None,
        runs=min(cells[name].runs for name in have),
        n=sum(cells[name].n for name in have),
        errors=sum(cells[name].errors for name in have),
        incomplete=any(cells[name].incomplete for name in have),
        cached=any(cells[name].cached for name in have),
        covered=None if len(have) == len(wanted) else (len(have), len(wanted)),
    )


def difference(cells: Mapping[str, Cell], others: Mapping[str, Cell], wanted: Sequence[str]) -> Cell:
    """Average minus the others' average, over the benchmarks of ``wanted`` that both have."""
    both = [name for name in wanted if _value(cells, name) is not None and _value(others, name) is not None]
    mine, theirs = average(cells, both), average(others, both)
    if mine.value is None or theirs.value is None:
        return EMPTY
    return Cell(
        value=mine.value - theirs.value,
        incomplete=mine.incomplete or theirs.incomplete,
        covered=None if len(both) == len(wanted) else (len(both), len(wanted)),
        signed=True,
    )


def marked(cell: Cell) -> Cell:
    """The same, as the best of its column."""
    return replace(cell, best=True)


def _read(one: Measured, measure: Measure) -> tuple[float | None, Pair | None]:
    try:
        return value_of(one.entry, measure), interval_of(one.entry, measure)
    except ValueError as error:
        where = f"{one.run / FILE}, arm {one.arm}"
        raise UserFault(f"the results cannot be read: {error}", where=where) from error


def _value(cells: Mapping[str, Cell], name: str) -> float | None:
    cell = cells.get(name)
    return None if cell is None else cell.value


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(v * w for v, w in zip(values, weights, strict=True)) / math.fsum(weights)
