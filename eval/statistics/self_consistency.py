"""sc@k, self-consistency: k samples vote, the answer with most votes counts (the paper's E.3).

The one idea: samples of one question are exchangeable, so sc@k is an expected value over all k-subsets of the
n samples drawn, and it is computed exactly from the number of votes that each answer has; nothing is drawn at
random, and the order of the samples plays no part.

Votes: an answer as its benchmark's rule read it (``Facts.vote``), so "(B)" and "B" are one. A sample in which
the rule could read nothing casts no vote. Tie rule: answers with equally many votes are equally likely to be
taken, which is also what "the first to come wins" means on average over all orders of the samples. A subset
without any vote scores 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

from eval.facts import Facts
from eval.statistics.bootstrap import Question
from eval.statistics.samples import drawn_values

Ballot = tuple[int, Fraction]
"""How many samples gave an answer, and the mean score of those samples (the same for all of them under every
rule that reads without loss)."""


def sc_at_k(votes: Sequence[tuple[str | None, float]], k: int) -> float | None:
    """Expected score of the majority's answer among ``k`` of the samples.

    Args:
        votes: (answer as read, score) of every valid sample of one question.

    Undefined (``None``) for ``k`` above the number of samples. Raises ValueError for ``k < 1``.
    """
    if k < 1:
        raise ValueError(f"sc@k needs k >= 1, got k={k}")
    if k > len(votes):
        return None
    scores: dict[str, list[Fraction]] = defaultdict(list)
    for answer, score in votes:
        if answer is not None:
            scores[answer].append(Fraction(score))
    ballots = tuple(sorted((len(found), sum(found, Fraction()) / len(found)) for found in scores.values()))
    return float(_expected(ballots, len(votes) - sum(number for number, _ in ballots), k))


def sc_questions(facts: Iterable[Facts], k: int) -> list[Question]:
    """Sum of ``sc_at_k`` over a question's rows with at least ``k`` valid samples, and number of these rows."""
    return drawn_values(facts, lambda own: sc_at_k([(fact.vote, fact.value or 0.0) for fact in own], k))


@lru_cache(maxsize=65_536)
def _expected(ballots: tuple[Ballot, ...], silent: int, k: int) -> Fraction:
    """Mean over all subsets of size k; ``silent`` samples cast no vote."""
    n = silent + sum(number for number, _ in ballots)
    won = sum((_won(ballots, silent, k, most) for most in range(1, k + 1)), Fraction())
    return won / math.comb(n, k)


def _won(ballots: tuple[Ballot, ...], silent: int, k: int, most: int) -> Fraction:
    """Sum of the taken answer's score over the k-subsets in which the leading answers have ``most`` votes each.

    State: (answers that have exactly ``most`` votes, votes cast) -> (subsets, sum of the leaders' scores over
    them).
    """
    states: dict[tuple[int, int], tuple[int, Fraction]] = {(0, 0): (1, Fraction())}
    for number, score in ballots:
        following: dict[tuple[int, int], tuple[int, Fraction]] = {}
        for (leaders, cast), (ways, total) in states.items():
            for taken in range(min(number, most, k - cast) + 1):
                choices = math.comb(number, taken)
                leads = taken == most
                gain = total + ways * score if leads else total
                key = (leaders + leads, cast + taken)
                old_ways, old_total = following.get(key, (0, Fraction()))
                following[key] = (old_ways + ways * choices, old_total + gain * choices)
        states = following
    return sum(
        (total / leaders * math.comb(silent, k - cast) for (leaders, cast), (_, total) in states.items() if leaders),
        Fraction(),
    )
