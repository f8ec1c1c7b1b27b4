"""Wilcoxon's signed-rank test over benchmarks (the paper's E.5), exact.

The one idea: a handful of benchmarks is too few for a normal approximation, and the exact distribution is cheap:
under the null hypothesis every difference is as likely up as down, so the sum of the ranks that go up is a sum of
independent halves. It is worked out for the ranks at hand, ties included; nothing is approximated.

Zeros: a benchmark on which both are equal says nothing either way and is left out before ranking (Wilcoxon's own
rule), and counted. Ties: differences of equal size (within 1e-12, so that 0.3 - 0.2 equals 0.2 - 0.1) share the mean
of their ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

MOST = 1000
_SAME = 1e-12


@dataclass(frozen=True)
class SignedRank:
    """The test's outcome. ``n`` benchmarks with a difference, ``zeros`` without."""

    n: int
    zeros: int
    rank_sum_up: float
    """Sum of the ranks of positive differences."""
    rank_sum_down: float
    p_greater: float | None
    """Chance, if neither were better, of a rank sum up at least this large; ``None`` for ``n`` of 0. One-sided, as
    the paper's p over ten benchmarks, which is 2**-10: ten of ten."""
    p_two_sided: float | None
    smallest_p_greater: float | None
    """The smallest ``p_greater`` that ``n`` benchmarks can give at all, 2**-n. With four it is 0.0625."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def signed_rank(differences: Sequence[float]) -> SignedRank:
    """Test whether differences (ours minus the baseline's, one a benchmark) lean to one side.

    Raises ValueError for a difference that is no finite number, or for more than 1,000 of them.
    """
    if len(differences) > MOST or not all(math.isfinite(one) for one in differences):
        raise ValueError(f"signed_rank needs at most {MOST} finite differences")
    kept = [one for one in differences if abs(one) > _SAME]
    ranks = _doubled_ranks([abs(one) for one in kept])
    up = sum(rank for rank, one in zip(ranks, kept, strict=True) if one > 0)
    down = sum(ranks) - up
    if not kept:
        return SignedRank(0, len(differences), 0.0, 0.0, None, None, None)
    chances = _distribution(ranks)
    at_least, at_most = float(chances[up:].sum()), float(chances[: up + 1].sum())
    return SignedRank(
        n=len(kept),
        zeros=len(differences) - len(kept),
        rank_sum_up=up / 2,
        rank_sum_down=down / 2,
        p_greater=min(1.0, at_least),
        p_two_sided=min(1.0, 2 * min(at_least, at_most)),
        smallest_p_greater=2.0 ** -len(kept),
    )


def _doubled_ranks(sizes: Sequence[float]) -> list[int]:
    """Twice the mean rank of each size: whole numbers, so that sums of ranks can be counted."""
    order = sorted(range(len(sizes)), key=lambda index: sizes[index])
    ranks = [0] * len(sizes)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and sizes[order[end + 1]] - sizes[order[start]] <= _SAME:
            end += 1
        for place in range(start, end + 1):
            ranks[order[place]] = start + end + 2  # twice the mean of the ranks start+1 .. end+1
        start = end + 1
    return ranks


def _distribution(ranks: Sequence[int]) -> np.ndarray:
    """Chance of each doubled rank sum under the null hypothesis."""
    chances = np.zeros(sum(ranks) + 1)
    chances[0] = 1.0
    for rank in ranks:
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[: len(chances) - rank]
        chances = (chances + shifted) / 2
    return chances
