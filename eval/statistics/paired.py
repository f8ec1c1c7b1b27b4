"""Two arms on the same questions.

The one idea: a row that both answered is one pair of mean scores; everything here is made of their differences.
Rows that only one of them answered validly are left out, and both accuracies are given over the shared ones. Mostly a
row is a question. Where several rows ask one question (HR-Bench's rotated options), the question is what is drawn, won,
lost and counted, with the mean of its rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eval.facts import Facts
from eval.statistics.bootstrap import (
    RESAMPLES,
    Interval,
    Question,
    constant,
    percentiles,
    resampled_means,
    wilson_interval,
)
from eval.statistics.power import (
    detectable_difference,
    detectable_difference_of_means,
    sample_size,
    sample_size_of_means,
)
from eval.statistics.samples import question_means

_SAME = 1e-12


@dataclass(frozen=True)
class Comparison:
    """An arm against a baseline over the ``n`` rows that both answered."""

    n: int
    questions: int
    """What the bootstrap draws: ``n``, or fewer where several rows ask one question."""
    accuracy: float
    """The arm's, over those rows, each counting the same."""
    baseline: float
    difference: float
    """``accuracy`` - ``baseline``."""
    ci95: Interval
    p: float
    """Two-sided, by bootstrap: share of resamples, moved so that their mean is 0, that lie at least as far from 0 as
    ``difference``; one is added to both counts, so that it is never 0."""
    wins: int
    """Questions on which the arm scored higher; ``wins`` + ``losses`` + ``ties`` = ``questions``."""
    losses: int
    ties: int
    discordant: float
    """(``wins`` + ``losses``) / ``questions``."""
    mcnemar_p: float | None
    """Two-sided exact McNemar test on wins and losses; ``None`` where a question has another score than 0 or 1 (for
    example several samples) or several rows, since wins then weigh differently."""
    detectable: float | None
    """Smallest difference that so many questions of this ``discordant`` share (with several rows a question: of this
    mean square of their differences) show in 80 of 100 runs at the 5 % level; ``None``: none, or a row has another
    score than 0 or 1."""
    questions_needed: int | None
    """Questions that would show ``difference`` so; ``None`` for a difference of 0, or where a row has another score
    than 0 or 1."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    baseline: Sequence[Facts], arm: Sequence[Facts], *, seed: int, resamples: int = RESAMPLES
) -> Comparison | None:
    """Paired comparison; ``None`` where they share no row. The bootstrap draws questions, the same in both arms."""
    asks = {fact.row_id: fact.cluster for fact in (*baseline, *arm) if fact.cluster is not None}
    return compare_means(question_means(baseline), question_means(arm), asks=asks, seed=seed, resamples=resamples)


def compare_means(
    baseline: Mapping[str, float],
    arm: Mapping[str, float],
    *,
    asks: Mapping[str, str] | None = None,
    seed: int,
    resamples: int = RESAMPLES,
) -> Comparison | None:
    """``compare`` on mean scores by row. ``asks``: row -> question, for rows that are not questions of their own."""
    shared = sorted(baseline.keys() & arm.keys())
    if not shared:
        return None
    n = len(shared)
    before, after = [baseline[row] for row in shared], [arm[row] for row in shared]
    gains = [_clean(new - old) for old, new in zip(before, after, strict=True)]
    difference = math.fsum(gains) / n
    drawn = _by_question(shared, gains, asks or {})
    means = [_clean(total / count) for total, count in drawn]
    wins, losses = sum(mean > 0 for mean in means), sum(mean < 0 for mean in means)
    ci95, p = _bootstrap(drawn, difference, seed, resamples)
    binary = all(value in (0.0, 1.0) for value in (*before, *after))
    plan = _plan(means, math.fsum(means) / len(means), single=len(drawn) == n) if binary else (None, None)
    return Comparison(
        n=n,
        questions=len(drawn),
        accuracy=math.fsum(after) / n,
        baseline=math.fsum(before) / n,
        difference=difference,
        ci95=ci95,
        p=p,
        wins=wins,
        losses=losses,
        ties=len(drawn) - wins - losses,
        discordant=(wins + losses) / len(drawn),
        mcnemar_p=mcnemar(wins, losses) if binary and len(drawn) == n else None,
        detectable=plan[0],
        questions_needed=plan[1],
    )


def paired_difference(
    before: Sequence[Facts], after: Sequence[Facts], *, seed: int, resamples: int = RESAMPLES
) -> tuple[float, Interval] | None:
    """Mean accuracy gain over the questions that both arms answered, with its 95 % bootstrap interval (same
    questions in both arms of every resample). ``None`` where they share no question."""
    found = compare(before, after, seed=seed, resamples=resamples)
    return None if found is None else (found.difference, found.ci95)


def mcnemar(wins: int, losses: int) -> float:
    """Two-sided exact p: chance that a fair coin thrown ``wins + losses`` times is at least this one-sided. 1 where
    the arms differ on no question; below 0.05 only from six discordant questions on."""
    thrown = wins + losses
    ways = tail = 1
    for count in range(min(wins, losses)):
        ways = ways * (thrown - count) // (count + 1)
        tail += ways
    return min(1.0, 2 * tail / 2**thrown)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's correction for several comparisons: the smallest p times their number, the next times one less, and
    so on, never falling. Below 0.05 they may all be called significant at 5 % together."""
    ordered = sorted(p_values.items(), key=lambda item: (item[1], item[0]))
    found: dict[str, float] = {}
    highest = 0.0
    for place, (name, p) in enumerate(ordered):
        highest = max(highest, min(1.0, p * (len(ordered) - place)))
        found[name] = highest
    return {name: found[name] for name in p_values}


def _by_question(rows: Sequence[str], gains: Sequence[float], asks: Mapping[str, str]) -> list[Question]:
    """Sum of the gains and number of the rows of each question, in the order in which they come up."""
    found: dict[tuple[bool, str], Question] = defaultdict(lambda: (0.0, 0))
    for row, gain in zip(rows, gains, strict=True):
        key = (row in asks, asks.get(row, row))
        total, count = found[key]
        found[key] = total + gain, count + 1
    return list(found.values())


def _plan(means: Sequence[float], difference: float, *, single: bool) -> tuple[float | None, int | None]:
    """Detectable difference and questions needed, from the questions' mean gains. ``single``: a row each, so that the
    gains are -1, 0 or 1."""
    square = math.fsum(mean * mean for mean in means) / len(means)
    if single:
        detectable = detectable_difference(len(means), square)
        return detectable, sample_size(difference, square) if difference else None
    needed = None if abs(difference) < _SAME else sample_size_of_means(difference, square)
    return detectable_difference_of_means(len(means), square), needed


def _bootstrap(drawn: Sequence[Question], difference: float, seed: int, resamples: int) -> tuple[Interval, float]:
    """Interval and p from the sums of gains. Where all questions gain the same, resampling shows no spread: the
    interval then reaches as far as a share of other outcomes can hide in so many questions (Wilson), and p is that of
    McNemar's test."""
    if constant(drawn):
        reach = wilson_interval(0.0, len(drawn))[1]
        bounds = max(-1.0, difference - reach), min(1.0, difference + reach)
        sided = len(drawn) if difference else 0
        return bounds, mcnemar(sided, 0)
    statistics = resampled_means(drawn, np.random.default_rng(seed), resamples)
    far = int(np.count_nonzero(np.abs(statistics - difference) >= abs(difference) - _SAME))
    return percentiles(statistics), (far + 1) / (len(statistics) + 1)


def _clean(gain: float) -> float:
    """Gains of equal mean scores are 0 exactly."""
    return 0.0 if abs(gain) < _SAME else gain
