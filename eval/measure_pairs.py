"""Lets pairs of an expert and a skill answer questions, and counts.

The one idea: a pair is asked through the same pool and call cache that policies use, with the question itself as the
sub-question; what it answers is scored as an episode's answer is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from eval.judge import Judge
from eval.judge import judge as by_name
from eval.matrix import Cell, Matrix, Pair
from experts.outcome import Outcome
from orchestrator.prompt import question_text
from orchestrator.runner import Delegates
from orchestrator.task import Task
from registry.errors import UserFault


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
