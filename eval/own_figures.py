"""A benchmark's own figures of one arm: its published average, its groups, and what the lenient rule takes besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from eval.benchmarks.aggregate import aggregate
from eval.benchmarks.spec import Benchmark
from eval.facts import Facts
from eval.statistics.bootstrap import Interval, interval
from eval.statistics.groups import accuracy
from eval.statistics.macro import strata_interval
from eval.statistics.samples import drawn_questions, row_means


def labels_of(fact: Facts, added: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The row's label in each grouping: the benchmark's, and ``added`` ones by row id."""
    own, more = dict(fact.groups), added.get(fact.row_id)
    return own if more is None else own | dict(more)


def lenient_of(facts: Sequence[Facts], benchmark: Benchmark | None, *, seed: int) -> dict[str, Any] | None:
    """Accuracy by the lenient rule over the same trajectories, its 95 % interval, and how many trajectories it scores
    otherwise; ``None`` where the benchmark has no such rule."""
    if benchmark is None or benchmark.scorer.lenient is None:
        return None
    differ = sum(fact.lenient != fact.value for fact in facts if fact.valid)
    scored = [replace(fact, value=fact.lenient) for fact in facts] if differ else facts
    return {"accuracy": accuracy(scored), "ci95": interval(drawn_questions(scored), seed=seed), "differ": differ}


def own_figures(facts: Sequence[Facts], benchmark: Benchmark | None, *, seed: int) -> dict[str, Any]:
    """``average``: what the benchmark's authors report (``metrics`` in its YAML) over the rows with a valid trajectory;
    ``average_ci95``: its own 95 % interval, which draws questions; ``macros``: means of the labels' means; ``points``:
    sum over rows, as OCRBench counts. All are ``None`` where there is no valid trajectory, or rows lack a label that
    the average is over."""
    nothing = {"average": None, "average_ci95": None, "macros": {}, "points": None}
    if benchmark is None:
        ci95 = interval(drawn_questions(facts), seed=seed)
        return {**nothing, "average": accuracy(facts), "average_ci95": ci95}
    scored = [(fact.row_id, _labels(fact, benchmark), fact.value) for fact in facts if fact.value is not None]
    if not scored:
        return nothing
    try:
        found = aggregate(benchmark.metrics, scored)
    except ValueError:  # rows out of a parquet file carry no labels
        return nothing
    return {
        "average": found.headline,
        "average_ci95": _headline_interval(facts, benchmark, seed),
        "macros": dict(found.macro),
        "points": found.points,
    }


def _headline_interval(facts: Sequence[Facts], benchmark: Benchmark, seed: int) -> Interval | None:
    """Of the mean over rows, each counting once, or of the mean of the labels' means."""
    over = benchmark.metrics.over
    strata = row_means(facts, lambda fact: "" if over is None else _labels(fact, benchmark)[over])
    return strata_interval(strata, seed=seed)


def _labels(fact: Facts, benchmark: Benchmark) -> Mapping[str, str]:
    return {"family": fact.group} if benchmark.generator is not None else dict(fact.groups)
