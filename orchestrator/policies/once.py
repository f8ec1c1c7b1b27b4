"""Baselines that delegate once and repeat what the expert says.

The one idea: a routing rule is a function from question and seed to a pair (expert, skill); everything else
about these baselines is the same, so their difference in accuracy is the difference of the rules.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from orchestrator.action import Search
from orchestrator.episode import Episode
from orchestrator.neutralise import neutralise
from orchestrator.policy import PolicyTurn
from orchestrator.prompt import question_text
from orchestrator.task import Task


class DelegateOnce(ABC):
    """Turn 1: the chosen pair is asked the question as it stands. Turn 2: its reply is the answer."""

    name: str

    @abstractmethod
    def pick(self, question: str, seed: int) -> tuple[str, str]:
        """(expert, skill) for a question; the same for the same seed."""

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        started = time.perf_counter()
        text = reply_as_answer(episode)
        if text is None:
            text = call_of(episode, self.pick(task_of(episode).question, seed))
        return PolicyTurn(text, latency_s=time.perf_counter() - started)

    async def aclose(self) -> None:  # noqa: B027  nothing to close is the rule, not a gap
        """Nothing is held."""


def task_of(episode: Episode) -> Task:
    """The episode's task. Raises ValueError where it carries none."""
    if episode.task is None:
        raise ValueError(f"episode {episode.task_id} carries no task")
    return episode.task


def reply_as_answer(episode: Episode) -> str | None:
    """The turn that repeats the last reply; None before there is one."""
    replies = [t.observation for t in episode.turns if isinstance(t.action, Search) and t.observation]
    return f"<answer> {neutralise(replies[-1].text).strip()} </answer>" if replies else None


def call_of(episode: Episode, pair: tuple[str, str]) -> str:
    """The turn that asks a pair (expert, skill) the question as it stands."""
    expert, skill = pair
    return f"<search> {expert}@@{skill}: {question_text(task_of(episode))} </search>"
