"""One row, one answer, one score: the only place where evaluation calls the scorers."""

from __future__ import annotations

from orchestrator.task import Task
from registry.errors import UserFault
from rewards import Score, score


def judge(task: Task, answer: str | None) -> Score:
    """Score an answer (``None``: there was none) by the rule of the task's benchmark and family.

    Raises UserFault for a row without a right answer."""
    if task.ground_truth is None:
        raise UserFault("no right answer to score against", where=f"row {task.row_id}")
    return score(task.benchmark, task.ground_truth, answer, choices=task.choices, group=task.group)
