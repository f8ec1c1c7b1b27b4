"""The interval of a macro average.

The one idea: a question is drawn once, whatever groups its rows are in. Groups without a common question draw
their own questions each for itself; groups that share questions (HR-Bench asks each question in all four rotations)
draw them together, since what makes a question hard in one makes it hard in the others.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from eval.facts import Facts
from eval.statistics.bootstrap import (
    RESAMPLES,
    Interval,
    Question,
    constant,
    drawn_shares,
    percentiles,
    resampled_means,
    wilson_interval,
)

Strata = Mapping[str, Mapping[str, Question]]
"""Group -> question -> sum and number of its scores in that group."""
_NOTHING: Question = (0.0, 0)


def macro_interval(
    facts: Iterable[Facts], *, seed: int, name: Callable[[Facts], str] | None = None, resamples: int = RESAMPLES
) -> Interval | None:
    """95 % interval of the macro average over groups (see ``eval.statistics.groups.groups``)."""
    found: dict[str, dict[str, Question]] = defaultdict(dict)
    for fact in facts:
        if fact.value is not None:
            group = found[fact.group if name is None else name(fact)]
            total, count = group.get(fact.question, _NOTHING)
            group[fact.question] = total + fact.value, count + 1
    return strata_interval(found, seed=seed, resamples=resamples)


def strata_interval(strata: Strata, *, seed: int, resamples: int = RESAMPLES) -> Interval | None:
    """The same from sums. In every resample groups with questions of their own draw as many of those as they have,
    groups with common questions as many of these together; a group of which nothing was drawn is left out of that
    resample. ``None`` without a question.

    Where no group shows any spread, the groups' Wilson intervals are combined. The distance of each bound from the
    average is the groups' distances divided by their number: added up among groups with common questions, and the root
    of the summed squares of what that gives.
    """
    blocks = list(_blocks({group: strata[group] for group in sorted(strata) if strata[group]}))
    if not blocks:
        return None
    if all(constant(list(group.values())) for block in blocks for group in block):
        return _combined_wilson(blocks)
    rng = np.random.default_rng(seed)
    means = np.concatenate([_resampled(block, rng, resamples) for block in blocks], axis=1)
    return percentiles(np.nanmean(means, axis=1))


def _blocks(strata: Strata) -> Iterator[Sequence[Mapping[str, Question]]]:
    """The groups, those with common questions together."""
    block_of = {group: group for group in strata}  # a group -> another one of its block, the first -> itself

    def first(group: str) -> str:
        while block_of[group] != group:
            group = block_of[group]
        return group

    seen_in: dict[str, str] = {}
    for group, questions in strata.items():
        for question in questions:
            other = first(seen_in.setdefault(question, group))
            block_of[max(first(group), other)] = min(first(group), other)
    blocks: dict[str, list[Mapping[str, Question]]] = defaultdict(list)
    for group in strata:
        blocks[first(group)].append(strata[group])
    yield from blocks.values()


def _resampled(block: Sequence[Mapping[str, Question]], rng: np.random.Generator, resamples: int) -> np.ndarray:
    """Mean score of each group in each resample; not a number where nothing of it was drawn."""
    if len(block) == 1:
        return resampled_means(list(block[0].values()), rng, resamples)[:, None]
    questions = dict.fromkeys(question for group in block for question in group)
    kinds = sorted(Counter(tuple(group.get(one, _NOTHING) for group in block) for one in questions).items())
    sums = np.array([[total for total, _ in kind] for kind, _ in kinds], dtype=float)
    counts = np.array([[count for _, count in kind] for kind, _ in kinds], dtype=float)
    means = []
    for drawn in drawn_shares([number for _, number in kinds], rng, resamples):
        with np.errstate(invalid="ignore"):
            means.append((drawn @ sums) / (drawn @ counts))
    return np.concatenate(means)


def _combined_wilson(blocks: Sequence[Sequence[Mapping[str, Question]]]) -> Interval:
    means, below, above = [], [], []
    for block in blocks:
        low_sum = high_sum = 0.0
        for group in block:
            total, count = next(iter(group.values()))
            mean = total / count
            low, high = wilson_interval(mean, len(group))
            means.append(mean)
            low_sum, high_sum = low_sum + mean - low, high_sum + high - mean
        below.append(low_sum)
        above.append(high_sum)
    centre = math.fsum(means) / len(means)
    return max(0.0, centre - math.hypot(*below) / len(means)), min(1.0, centre + math.hypot(*above) / len(means))
