"""Intervals by resampling whole questions.

The one idea: several samples of one question are not independent, and neither are several rows that ask it (with the
options in another order), so what is drawn again with replacement is the question with all its rows and samples.
Questions that look the same (equal sum of scores, equal number of samples)
are drawn together: how often each kind comes up in a resample is multinomial, so that 100,000 questions cost no
more than 100.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

RESAMPLES = 10_000
Interval = tuple[float, float]
Question = tuple[float, int]
"""Sum of the scores of one question's valid trajectories, over all its rows and samples, and how many there are."""

_BLOCK = 1 << 22


def interval(questions: Sequence[Question], *, seed: int, resamples: int = RESAMPLES) -> Interval | None:
    """95 % percentile interval of the mean score over all samples; ``None`` without a question.

    Where every question has the same mean (all right, all wrong, a single question) resampling shows no spread
    at all; the Wilson score interval over questions is given instead of a width of zero.
    """
    if not questions:
        return None
    if constant(questions):
        total, count = questions[0]
        return wilson_interval(total / count, len(questions))
    return percentiles(resampled_means(questions, np.random.default_rng(seed), resamples))


def constant(questions: Sequence[Question]) -> bool:
    """Whether all questions have the same mean score."""
    total, count = questions[0]
    return all(other * count == total * number for other, number in questions)


def resampled_means(questions: Sequence[Question], rng: np.random.Generator, resamples: int = RESAMPLES) -> np.ndarray:
    """Mean score of each of ``resamples`` draws of ``len(questions)`` questions. The order of the questions
    does not matter."""
    kinds = sorted(Counter(questions).items())
    sums = np.array([total for (total, _), _ in kinds], dtype=float)
    counts = np.array([count for (_, count), _ in kinds], dtype=float)
    draws = drawn_shares([number for _, number in kinds], rng, resamples)
    return np.concatenate([(drawn @ sums) / (drawn @ counts) for drawn in draws])


def drawn_shares(numbers: Sequence[int], rng: np.random.Generator, resamples: int) -> Iterator[np.ndarray]:
    """How often each kind of question comes up in each resample, given how many there are of it; some resamples at a
    time, a line each."""
    whole = sum(numbers)
    shares = np.array(numbers, dtype=float) / whole
    step = max(1, _BLOCK // len(numbers))
    for start in range(0, resamples, step):
        yield rng.multinomial(whole, shares, size=min(step, resamples - start))


def percentiles(statistics: np.ndarray) -> Interval:
    """The 2.5th and the 97.5th percentile, linear interpolation between order statistics."""
    low, high = np.percentile(statistics, [2.5, 97.5])
    return float(low), float(high)


def wilson_interval(share: float, n: int) -> Interval:
    """95 % Wilson score interval of a share observed on ``n`` questions."""
    z = 1.959964
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
