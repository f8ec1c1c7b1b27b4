"""Accuracy by groups, and its two averages.

The one idea: the micro average counts every trajectory the same, the macro average every group. Groups are the
benchmark's own (families, tasks, "simple" and "complex", ...) or whole benchmarks; the paper's tables average
benchmarks, and tau2-bench's domains, the macro way.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from eval.facts import Facts
from eval.statistics.bootstrap import (
    RESAMPLES,
    Interval,
    Question,
    constant,
    interval,
    percentiles,
    resampled_means,
    wilson_interval,
)
from eval.statistics.samples import questions

Number = TypeVar("Number")


@dataclass(frozen=True)
class Group:
    """One group. ``n``: questions with at least one valid trajectory; ``accuracy``: mean score of the ``valid``
    trajectories; ``ci95``: of that mean, by question."""

    accuracy: float | None
    ci95: Interval | None
    n: int
    valid: int
    errors: int

    def to_json(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy,
            "ci95": self.ci95,
            "n": self.n,
            "valid": self.valid,
            "errors": self.errors,
        }


def accuracy(facts: Iterable[Facts]) -> float | None:
    """Mean score of the valid trajectories (the micro average); ``None`` where there is none."""
    values = [fact.value for fact in facts if fact.value is not None]
    return math.fsum(values) / len(values) if values else None


def by_group(facts: Iterable[Facts], measure: Callable[[list[Facts]], Number]) -> dict[str, Number]:
    """``measure`` of each group, groups in alphabetical order."""
    return {name: measure(found) for name, found in _split(facts, _own_group).items()}


def groups(facts: Iterable[Facts], *, seed: int, name: Callable[[Facts], str] | None = None) -> dict[str, Group]:
    """Every group in alphabetical order. ``name`` says which group a trajectory belongs to, its own if left
    out; so benchmarks that merge groups, or divide them another way, can be measured too."""
    found = {}
    for group, members in _split(facts, name or _own_group).items():
        seen = questions(members)
        valid = sum(count for _, count in seen)
        ci95 = interval(seen, seed=seed)
        found[group] = Group(accuracy(members), ci95, len(seen), valid, len(members) - valid)
    return found


def macro_average(values: Iterable[float | None]) -> float | None:
    """Mean over groups, each counting the same. A group without a valid trajectory is left out; ``None`` where
    no group has one."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def weighted_average(values: Mapping[str, float | None], weights: Mapping[str, float]) -> float | None:
    """Mean over groups by weight, as BFCL-V4 averages its subsets by their sizes. A group without a value is
    left out together with its weight; ``None`` where nothing is left.

    Raises ValueError for a value without weight, and for a negative weight.
    """
    known = {name: value for name, value in values.items() if value is not None}
    for name in known:
        if name not in weights or weights[name] < 0:
            raise ValueError(f"group {name!r} needs a weight of 0 or more")
    whole = math.fsum(weights[name] for name in known)
    return math.fsum(weights[name] * value for name, value in known.items()) / whole if whole else None


def macro_interval(
    facts: Iterable[Facts], *, seed: int, name: Callable[[Facts], str] | None = None, resamples: int = RESAMPLES
) -> Interval | None:
    """95 % interval of the macro average over groups (see ``groups``): in every resample each group draws as many
    of its own questions as it has.

    Where no group shows any spread, the groups' Wilson intervals are combined: the distance of each bound from the
    average is the root of the summed squared distances of the groups, divided by their number.
    """
    strata = [seen for members in _split(facts, name or _own_group).values() if (seen := questions(members))]
    if not strata:
        return None
    if all(constant(seen) for seen in strata):
        return _combined_wilson(strata)
    rng = np.random.default_rng(seed)
    return percentiles(np.mean([resampled_means(seen, rng, resamples) for seen in strata], axis=0))


def _combined_wilson(strata: Sequence[Sequence[Question]]) -> Interval:
    means = [seen[0][0] / seen[0][1] for seen in strata]
    bounds = [wilson_interval(mean, len(seen)) for mean, seen in zip(means, strata, strict=True)]
    centre = math.fsum(means) / len(means)
    below = math.hypot(*(mean - low for mean, (low, _) in zip(means, bounds, strict=True))) / len(means)
    above = math.hypot(*(high - mean for mean, (_, high) in zip(means, bounds, strict=True))) / len(means)
    return max(0.0, centre - below), min(1.0, centre + above)


def _own_group(fact: Facts) -> str:
    return fact.group


def _split(facts: Iterable[Facts], name: Callable[[Facts], str]) -> dict[str, list[Facts]]:
    found: dict[str, list[Facts]] = defaultdict(list)
    for fact in facts:
        found[name(fact)].append(fact)
    return {group: found[group] for group in sorted(found)}
