"""Which expert under which skill answers which family: the measured matrix, and what follows from it.

The one idea: every pair answers every row of the validation split once, through the same pool and call
cache that policies use. From the counts follow the best pair of each family, the best single pair over all
families, and how much is lost by a wrong skill or a wrong expert.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from registry.registry import Registry

Pair = tuple[str, str]
"""(expert, Level-1 skill), canonical names."""


def pair_name(pair: Pair) -> str:
    return f"{pair[0]}@@{pair[1]}"


@dataclass
class Cell:
    """Calls of one pair on one family: summed scores, valid calls, infrastructure failures."""

    score: float = 0.0
    n: int = 0
    errors: int = 0

    @property
    def accuracy(self) -> float | None:
        """Mean score of the valid calls; ``None`` where there was none."""
        return self.score / self.n if self.n else None


@dataclass(frozen=True)
class Drop:
    """What one family loses when one half of its best pair is changed (accuracy of the best pair minus the
    other's).

    ``wrong_skill``: best expert under the *best* other skill, the kindest comparison; ``wrong_expert``
    likewise. The ``mean_`` values compare with the mean over all other skills or experts. ``None`` where
    the registry has no other.
    """

    best: Pair
    accuracy: float
    wrong_skill: float | None
    wrong_expert: float | None
    mean_wrong_skill: float | None
    mean_wrong_expert: float | None

    @property
    def largest(self) -> float:
        """The larger of the two kindest drops."""
        return max(self.wrong_skill or 0.0, self.wrong_expert or 0.0)


@dataclass(frozen=True)
class Matrix:
    """Counts of every (pair, family); pairs in registry order, families sorted."""

    pairs: tuple[Pair, ...]
    families: tuple[str, ...]
    cells: Mapping[tuple[Pair, str], Cell] = field(repr=False)

    def accuracy(self, pair: Pair, family: str) -> float | None:
        cell = self.cells.get((pair, family))
        return cell.accuracy if cell else None

    def ranked(self, family: str) -> tuple[Pair, ...]:
        """Pairs from best to worst on a family; ties keep registry order, unmeasured pairs come last."""
        return tuple(sorted(self.pairs, key=lambda pair: -_known(self.accuracy(pair, family))))

    def best(self, family: str) -> tuple[Pair, float | None]:
        pair = self.ranked(family)[0]
        return pair, self.accuracy(pair, family)

    def overall(self, pair: Pair) -> float | None:
        """Mean over families (each counts the same) of a pair's accuracy; a family without a valid call is
        left out."""
        known = [value for family in self.families if (value := self.accuracy(pair, family)) is not None]
        return sum(known) / len(known) if known else None

    def best_single(self) -> tuple[Pair, float | None]:
        """The pair with the highest ``overall`` among those measured on most families; ties keep registry
        order."""

        def rank(pair: Pair) -> tuple[int, float]:
            measured = sum(self.accuracy(pair, family) is not None for family in self.families)
            return measured, _known(self.overall(pair))

        pair = max(self.pairs, key=rank)
        return pair, self.overall(pair)

    def drop(self, family: str) -> Drop:
        """See ``Drop``."""
        (expert, skill), top = self.best(family)
        top = _known(top, 0.0)
        by_skill = [self.accuracy((expert, other), family) for other in self.skills if other != skill]
        by_expert = [self.accuracy((other, skill), family) for other in self.experts if other != expert]
        return Drop(
            best=(expert, skill),
            accuracy=top,
            wrong_skill=_gap(top, by_skill, max),
            wrong_expert=_gap(top, by_expert, max),
            mean_wrong_skill=_gap(top, by_skill, _mean),
            mean_wrong_expert=_gap(top, by_expert, _mean),
        )

    @property
    def experts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(expert for expert, _ in self.pairs))

    @property
    def skills(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(skill for _, skill in self.pairs))

    @property
    def errors(self) -> int:
        return sum(cell.errors for cell in self.cells.values())

    def to_json(self) -> dict[str, Any]:
        single, single_accuracy = self.best_single()
        drops = {family: self.drop(family) for family in self.families}
        return {
            "families": {
                family: {
                    "best_pair": pair_name(drop.best),
                    "accuracy": drop.accuracy,
                    "wrong_skill_drop": drop.wrong_skill,
                    "wrong_expert_drop": drop.wrong_expert,
                    "mean_wrong_skill_drop": drop.mean_wrong_skill,
                    "mean_wrong_expert_drop": drop.mean_wrong_expert,
                }
                for family, drop in drops.items()
            },
            "best_single_pair": {"pair": pair_name(single), "accuracy": single_accuracy},
            "families_where_joint_choice_matters": sum(drop.largest >= 0.3 for drop in drops.values()),
            "errors": self.errors,
            "cells": {
                pair_name(pair): {
                    family: {"accuracy": cell.accuracy, "n": cell.n, "errors": cell.errors}
                    for family in self.families
                    if (cell := self.cells.get((pair, family)))
                }
                for pair in self.pairs
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Matrix:
        """Inverse of ``to_json``."""
        cells: dict[tuple[Pair, str], Cell] = {}
        pairs: list[Pair] = []
        for name, row in data["cells"].items():
            expert, _, skill = name.partition("@@")
            pairs.append((expert, skill))
            for family, cell in row.items():
                score = (cell["accuracy"] or 0.0) * cell["n"]
                cells[pairs[-1], family] = Cell(score, cell["n"], cell["errors"])
        return cls(tuple(pairs), tuple(data["families"]), cells)


def registry_pairs(registry: Registry) -> tuple[Pair, ...]:
    """Every expert with every Level-1 skill, in registry order."""
    return tuple((expert.name, skill.name) for expert in registry.experts for skill in registry.skills)


def _known(value: float | None, otherwise: float = -1.0) -> float:
    return otherwise if value is None else value


def _gap(top: float, others: Sequence[float | None], pick: Callable[[list[float]], float]) -> float | None:
    known = [value for value in others if value is not None]
    return top - pick(known) if known else None


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
