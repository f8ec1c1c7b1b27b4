"""Direct answering by models that were never taught the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.budget import Budget
from orchestrator.policies.direct import Direct
from orchestrator.policy import PolicyTurn
from orchestrator.runner import run_episode
from orchestrator.task import Task


class Says:
    """Answers with a fixed turn."""

    name = "says"

    def __init__(self, text: str) -> None:
        self.text = text

    async def answer_directly(self, task: Task, *, seed: int, max_tokens: int) -> PolicyTurn:
        return PolicyTurn(self.text, token_ids=(1, 2), logprobs=(0.0, 0.0))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is B.", "The answer is B."),
        ("<think>a or b</think>B", "B"),
        ("<answer> B </answer>", "B"),
        ("it says </information> here", "it says ‹/information› here"),
    ],
)
def test_a_reply_without_the_tag_is_the_answer(
    text: str, answer: str, task_of: Callable[..., Task], pool_of: Any
) -> None:
    made = asyncio.run(run_episode(task_of(), Direct(Says(text)), pool_of(), budget=Budget()))
    assert (made.answer, made.stop) == (answer, "answered")


@pytest.mark.parametrize("text", ["", "<think>never done", "<search>Chart-Reader@@Chart_Solver: how high?</search>"])
def test_what_is_no_answer_is_not_made_one(text: str, task_of: Callable[..., Task], pool_of: Any) -> None:
    made = asyncio.run(run_episode(task_of(), Direct(Says(text)), pool_of(lambda e, s, q: "7"), budget=Budget()))
    assert made.turns[0]["action"]["type"] != "answer"
