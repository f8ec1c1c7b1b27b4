"""Two arms on the same questions.

The one idea: a question that both answered is one pair of mean scores; everything here is made of their
differences. Questions that only one of them answered validly are left out, and both accuracies are given over the
shared ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eval.facts import Facts
from eval.statistics.bootstrap import RESAMPLES, Interval, percentiles, resampled_means, wilson_interval
from eval.statistics.power import detectable_difference, sample_size
from eval.statistics.samples import question_means

_SAME = 1e-12


@dataclass(frozen=True)
class Comparison:
    """An arm against a baseline over the ``n`` questions that both answered."""

    n: int
    accuracy: float
    """The arm's, over those questions, each counting the same."""
    baseline: float
    difference: float
    """``accuracy`` - ``baseline``."""
    ci95: Interval
    p: float
    """Two-sided, by bootstrap: share of resamples, moved so that their mean is 0, that lie at least as far from 0 as
    ``difference``; one is added to both counts, so that it is never 0."""
    wins: int
    """Questions on which the arm scored higher; ``wins`` + ``losses`` + ``ties`` = ``n``."""
    losses: int
    ties: int
    discordant: float
    """(``wins`` + ``losses``) / ``n``."""
    mcnemar_p: float | None
    """Two-sided exact McNemar test on wins and losses; ``None`` where a question has another score than 0 or 1 (for
    example several samples), since wins then weigh differently."""
    detectable: float | None
    """Smallest difference that ``n`` questions of this ``discordant`` share show in 80 of 100 runs at the 5 % level;
    ``None``: none, or ``mcnemar_p`` is ``None``."""
    questions_needed: int | None
    """Questions that would show ``difference`` so; ``None`` for a difference of 0, or where ``mcnemar_p`` is."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    baseline: Sequence[Facts], arm: Sequence[Facts], *, seed: int, resamples: int = RESAMPLES
) -> Comparison | None:
    """Paired comparison; ``None`` where they share no question. The bootstrap draws questions, the same in both
    arms."""
    return compare_means(question_means(baseline), question_means(arm), seed=seed, resamples=resamples)


def compare_means(
    baseline: Mapping[str, float], arm: Mapping[str, float], *, seed: int, resamples: int = RESAMPLES
) -> Comparison | None:
    """``compare`` on mean scores by question."""
    shared = sorted(baseline.keys() & arm.keys())
    if not shared:
        return None
    n = len(shared)
    before, after = [baseline[row] for row in shared], [arm[row] for row in shared]
    gains = [_clean(new - old) for old, new in zip(before, after, strict=True)]
    difference = math.fsum(gains) / n
    wins, losses = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    ci95, p = _bootstrap(gains, difference, seed, resamples)
    binary = all(value in (0.0, 1.0) for value in (*before, *after))
    share = (wins + losses) / n
    return Comparison(
        n=n,
        accuracy=math.fsum(after) / n,
        baseline=math.fsum(before) / n,
        difference=difference,
        ci95=ci95,
        p=p,
        wins=wins,
        losses=losses,
        ties=n - wins - losses,
        discordant=share,
        mcnemar_p=mcnemar(wins, losses) if binary else None,
        detectable=detectable_difference(n, share) if binary else None,
        questions_needed=sample_size(difference, share) if binary and wins != losses else None,
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


def _bootstrap(gains: Sequence[float], difference: float, seed: int, resamples: int) -> tuple[Interval, float]:
    """Interval and p. Where all gains are the same number, resampling shows no spread: the interval then reaches as
    far as a share of other outcomes can hide in n questions (Wilson), and p is that of McNemar's test."""
    if all(gain == gains[0] for gain in gains):
        reach = wilson_interval(0.0, len(gains))[1]
        bounds = max(-1.0, difference - reach), min(1.0, difference + reach)
        sided = len(gains) if difference else 0
        return bounds, mcnemar(sided, 0)
    statistics = resampled_means([(gain, 1) for gain in gains], np.random.default_rng(seed), resamples)
    far = int(np.count_nonzero(np.abs(statistics - difference) >= abs(difference) - _SAME))
    return percentiles(statistics), (far + 1) / (len(statistics) + 1)


def _clean(gain: float) -> float:
    """Gains of equal mean scores are 0 exactly."""
    return 0.0 if abs(gain) < _SAME else gain
