"""How many questions a paired comparison needs.

The one idea: two arms that answer the same questions are compared by the questions on which they differ (McNemar),
so what counts is the difference of their accuracies and the share of discordant questions, not the accuracies
themselves. Where a question's difference can be any number (rotated options make several rows of one question), the
mean square of the differences stands in the share's place.

n = (z(1 - alpha/2) * sqrt(d) + z(power) * sqrt(d - delta**2))**2 / delta**2

with ``delta`` the difference of the accuracies and ``d`` the discordant share (Miettinen 1968; Connor 1987), for
McNemar's two-sided test without continuity correction and one sample a question.
"""

from __future__ import annotations

import math
from statistics import NormalDist

ALPHA, POWER = 0.05, 0.8
_STEPS = 100


def sample_size(difference: float, discordant: float, *, alpha: float = ALPHA, power: float = POWER) -> int:
    """Smallest number of questions that shows a difference with the given chance.

    Args:
        difference: of the two accuracies, in 0..1; its sign does not matter.
        discordant: share of questions that one arm answers right and the other wrong, at least ``difference``.
        alpha: two-sided level of the test.
        power: chance of a significant outcome where the difference is real.

    Raises ValueError for values that cannot be.
    """
    delta = abs(difference)
    if not 0 < delta <= discordant <= 1:
        raise ValueError(f"needs 0 < difference <= discordant <= 1, got {difference:g} and {discordant:g}")
    return sample_size_of_means(delta, discordant, alpha=alpha, power=power)


def sample_size_of_means(difference: float, mean_square: float, *, alpha: float = ALPHA, power: float = POWER) -> int:
    """The same where the questions' differences, from -1 to 1, have this mean square (which for differences of -1, 0
    and 1 is the discordant share).

    Raises ValueError for values that cannot be.
    """
    delta = abs(difference)
    if not (delta > 0 and delta * delta <= mean_square * (1 + 1e-12) and mean_square <= 1):
        raise ValueError(f"needs 0 < difference**2 <= mean square <= 1, got {difference:g} and {mean_square:g}")
    reach = _z(1 - alpha / 2, "alpha") * math.sqrt(mean_square)
    reach += _z(power, "power") * math.sqrt(max(0.0, mean_square - delta * delta))
    return math.ceil((reach / delta) ** 2 - 1e-9)


def detectable_difference(
    questions: int, discordant: float, *, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Smallest difference that so many questions show with the given chance; ``None`` where not even a
    difference as large as the discordant share is shown.

    Raises ValueError for ``questions`` below 1 or a ``discordant`` share outside 0..1.
    """
    if questions < 1 or not 0 <= discordant <= 1:
        raise ValueError(f"needs questions >= 1 and a discordant share in 0..1, got {questions} and {discordant:g}")
    return _detectable(questions, discordant, discordant, alpha, power)


def detectable_difference_of_means(
    questions: int, mean_square: float, *, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """The same where the questions' differences, from -1 to 1, have this mean square; ``None`` where not even its root,
    as large as their mean can be, is shown.

    Raises ValueError for ``questions`` below 1 or a mean square outside 0..1.
    """
    if questions < 1 or not 0 <= mean_square <= 1:
        raise ValueError(f"needs questions >= 1 and a mean square in 0..1, got {questions} and {mean_square:g}")
    return _detectable(questions, mean_square, math.sqrt(mean_square), alpha, power)


def _detectable(questions: int, mean_square: float, largest: float, alpha: float, power: float) -> float | None:
    if largest == 0 or sample_size_of_means(largest, mean_square, alpha=alpha, power=power) > questions:
        return None
    low, high = 0.0, largest
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if sample_size_of_means(middle, mean_square, alpha=alpha, power=power) > questions:
            low = middle
        else:
            high = middle
    return high


def independent_discordance(first: float, second: float) -> float:
    """Discordant share of two arms with these accuracies whose mistakes have nothing to do with each other. Arms
    that share experts or a policy differ on fewer questions, so this plans on the safe side."""
    if not (0 <= first <= 1 and 0 <= second <= 1):
        raise ValueError(f"accuracies are in 0..1, got {first:g} and {second:g}")
    return first * (1 - second) + second * (1 - first)


def _z(share: float, name: str) -> float:
    if not 0 < share < 1:
        raise ValueError(f"{name} must lie between 0 and 1")
    return NormalDist().inv_cdf(share)
