"""From values of rows to a benchmark's figures: a pure function over (row id, groups, value).

The one idea: a row counts once. Several values of one row (samples) are averaged first; then rows are averaged
over everything (micro), inside each label of a group, or label by label and then over the labels (macro).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum

from eval.benchmarks.spec import Metrics

Scored = tuple[str, Mapping[str, str], float]
"""Row id, labels by group, value in 0..1."""


@dataclass(frozen=True)
class Figure:
    """A mean and how many rows it is over."""

    value: float
    rows: int


@dataclass(frozen=True)
class Aggregate:
    """All figures of one benchmark. Values are in 0..1; None where there is no row.

    headline: what is reported as the benchmark's figure. points: sum over rows (OCRBench counts so). macro: by group,
    the mean of the labels' means. groups: by group and label; where the headline is a macro mean, so is each label's.
    """

    headline: float | None
    micro: float | None
    points: float
    rows: int
    values: int
    macro: Mapping[str, float]
    groups: Mapping[str, Mapping[str, Figure]]


def aggregate(metrics: Metrics, scored: Iterable[Scored]) -> Aggregate:
    """The figures of a benchmark.

    HR-Bench: `headline: macro, over: cycle` is the mean inside each rotation of the options, then the mean of the
    rotations. A label whose rows are all wrong counts as 0 in a macro mean. Raises ValueError for a row whose labels
    change, or that lacks one that is asked for.
    """
    rows: dict[str, _Row] = {}
    values = 0
    for row_id, groups, value in scored:
        row = rows.get(row_id)
        if row is None:
            row = rows[row_id] = _Row(dict(groups))
        elif row.groups != groups:
            raise ValueError(f"row {row_id!r} comes with two different sets of groups")
        row.total += value
        row.n += 1
        values += 1
    everything = list(rows.values())
    over = list(dict.fromkeys([*([metrics.over] if metrics.over else ()), *metrics.macro_over]))
    return Aggregate(
        headline=_headline(metrics, everything),
        micro=_mean([row.mean for row in everything]),
        points=fsum(row.mean for row in everything),
        rows=len(everything),
        values=values,
        macro={name: _macro(everything, name) or 0.0 for name in over if everything},
        groups={
            name: {
                label: Figure(_headline(metrics, members) or 0.0, len(members))
                for label, members in sorted(_by_label(everything, name).items())
            }
            for name in metrics.by
        },
    )


@dataclass
class _Row:
    groups: dict[str, str]
    total: float = 0.0
    n: int = 0

    @property
    def mean(self) -> float:
        return self.total / self.n


def _headline(metrics: Metrics, rows: list[_Row]) -> float | None:
    if metrics.over is None:
        return _mean([row.mean for row in rows])
    return _macro(rows, metrics.over)


def _macro(rows: list[_Row], group: str) -> float | None:
    means = [_mean([row.mean for row in members]) for members in _by_label(rows, group).values()]
    return _mean([mean for mean in means if mean is not None])


def _by_label(rows: list[_Row], group: str) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for row in rows:
        label = row.groups.get(group)
        if label is None:
            raise ValueError(f"a row has no label for the group {group!r}; it has {sorted(row.groups)}")
        found.setdefault(label, []).append(row)
    return found


def _mean(values: list[float]) -> float | None:
    return fsum(values) / len(values) if values else None
