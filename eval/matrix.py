"""Which expert under which skill answers which family: the measured matrix, and what follows from it.

The one idea: every pair answers every row of the validation split once, through the same pool and call
cache that policies use. From the counts follow the best pair of each family, the best single pair over all
families, and how much is lost by a wrong skill or a wrong expert.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.judge import Judge
from eval.judge import judge as by_name
from experts.outcome import Outcome
from orchestrator.prompt import question_text
from orchestrator.runner import Delegates
from orchestrator.task import Task
from registry.errors import UserFault
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


async def measure(
    tasks: Sequence[Task],
    pool: Delegates,
    pairs: Sequence[Pair],
    *,
    judge: Judge = by_name,
    concurrency: int = 8,
    deadline_s: float = 30.0,
    on_done: Callable[[], None] = lambda: None,
) -> Matrix:
    """Let every pair answer every task (the task's question is the sub-question) and count.

    ``on_done`` is called after each of the ``len(tasks) * len(pairs)`` calls.
    """
    cells = {(pair, task.group): Cell() for pair in pairs for task in tasks}
    gate = asyncio.Semaphore(concurrency)

    async def one(task: Task) -> None:
        async with gate:
            for pair in pairs:
                cell = cells[pair, task.group]
                value = await answer_value(task, pair, pool, judge=judge, deadline_s=deadline_s)
                if value is None:
                    cell.errors += 1
                else:
                    cell.score += value
                    cell.n += 1
                on_done()

    await asyncio.gather(*(one(task) for task in tasks))
    return Matrix(tuple(pairs), tuple(sorted({task.group for task in tasks})), cells)


async def answer_value(
    task: Task, pair: Pair, pool: Delegates, *, judge: Judge = by_name, deadline_s: float
) -> float | None:
    """Score of one pair's answer to a task; ``None`` for an infrastructure failure, and where it cannot be scored."""
    expert, skill = pair
    reply = await pool.delegate(expert, skill, question_text(task), task.pictures, deadline_s=deadline_s)
    if reply.outcome.infrastructure:
        return None
    answer = reply.text if reply.outcome is Outcome.OK else None
    try:
        if judge.runs_programs(task):
            return (await asyncio.to_thread(judge, task, answer)).value
        return judge(task, answer).value
    except UserFault:
        return None


async def right_pairs(
    tasks: Iterable[Task],
    pool: Delegates,
    matrix: Matrix,
    *,
    judge: Judge = by_name,
    concurrency: int = 8,
    deadline_s: float = 30.0,
    on_done: Callable[[], None] = lambda: None,
) -> dict[str, Pair]:
    """The oracle's choice: for each task the first pair that answers it right, tried from the family's best
    pair down.

    A task that no pair answers keeps the family's best pair (and will be wrong). Pairs are tried one after
    another, so a task costs about one call where the family's best pair is good.
    """
    gate = asyncio.Semaphore(concurrency)
    chosen: dict[str, Pair] = {}

    async def one(task: Task) -> None:
        async with gate:
            order = matrix.ranked(task.group)
            chosen[task.row_id] = order[0]
            for pair in order:
                value = await answer_value(task, pair, pool, judge=judge, deadline_s=deadline_s)
                if value is not None and value >= 1.0:
                    chosen[task.row_id] = pair
                    break
            on_done()

    await asyncio.gather(*(one(task) for task in tasks))
    return chosen


def _known(value: float | None, otherwise: float = -1.0) -> float:
    return otherwise if value is None else value


def _gap(top: float, others: Sequence[float | None], pick: Callable[[list[float]], float]) -> float | None:
    known = [value for value in others if value is not None]
    return top - pick(known) if known else None


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
