"""Accuracy by groups, and its two averages.

The one idea: the micro average counts every trajectory the same, the macro average every group. Groups are the
benchmark's own (families, tasks, "simple" and "complex", ...) or whole benchmarks; the paper's tables average
benchmarks, and tau2-bench's domains, the macro way.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from eval.facts import Facts
from eval.statistics.bootstrap import Interval, interval
from eval.statistics.samples import drawn_questions, questions

Number = TypeVar("Number")


@dataclass(frozen=True)
class Group:
    """One group. ``n``: rows with at least one valid trajectory; ``accuracy``: mean score of the ``valid``
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
        ci95 = interval(drawn_questions(members), seed=seed)
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


def _own_group(fact: Facts) -> str:
    return fact.group


def _split(facts: Iterable[Facts], name: Callable[[Facts], str]) -> dict[str, list[Facts]]:
    found: dict[str, list[Facts]] = defaultdict(list)
    for fact in facts:
        found[name(fact)].append(fact)
    return {group: found[group] for group in sorted(found)}
