"""One step of the assistant: an episode in which the policy chooses who takes it.

The one idea: the runner drives a step like any other episode; only its experts are asked differently, with the whole
conversation, and the last good reply is kept whole. From the trajectory and that reply the step follows without
further I/O: a message, calls, or a fault that says the machinery failed (never an empty step in its place).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from experts.images import Picture
from experts.outcome import Delegation, Outcome
from orchestrator.budget import Budget
from orchestrator.episode import StopReason
from orchestrator.policy import Policy
from orchestrator.runner import Delegates, run_episode
from orchestrator.serving.brief import expert_brief, step_task
from orchestrator.serving.conversation import Conversation, RequestFault
from orchestrator.serving.reply import Reply, read_reply
from orchestrator.task import Task
from orchestrator.trajectory import Trajectory
from registry.registry import Registry

Source = Literal["expert", "answer"]

NO_ANSWER = "I have no answer to this."
"""The message of a step in which the policy came to no end; harnesses refuse an empty one."""


class StepFault(Exception):
    """The machinery failed, so there is no step; `status` is the HTTP status to tell it by."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.message, self.status = message, status


@dataclass(frozen=True)
class Step:
    """What comes back to the harness, and how it came about. source: whose words it is made of."""

    reply: Reply
    source: Literal["expert", "answer", "none"]


class _WithConversation:
    """The pool, with the conversation put into each question; remembers the last good reply and the last failure."""

    def __init__(self, pool: Delegates, conversation: Conversation, task: Task) -> None:
        self._pool, self._conversation, self._task = pool, conversation, task
        self.good: Delegation | None = None
        self.failed: Delegation | None = None

    @property
    def registry(self) -> Registry:
        return self._pool.registry

    async def delegate(
        self,
        expert: str,
        skill: str,
        question: str,
        pictures: Sequence[Picture],
        *,
        deadline_s: float | None = None,
    ) -> Delegation:
        brief = expert_brief(self._conversation, self._task, question)
        done = await self._pool.delegate(expert, skill, brief, pictures, deadline_s=deadline_s)
        if done.outcome is Outcome.OK:
            self.good = done
        elif done.outcome.infrastructure:
            self.failed = done
        return done


async def take_step(
    conversation: Conversation,
    policy: Policy,
    pool: Delegates,
    *,
    budget: Budget,
    view_chars: int,
    source: Source = "expert",
    seed: int = 0,
    deadline_s: float = 300.0,
) -> tuple[Step | StepFault, Trajectory]:
    """The step and its trajectory, within `deadline_s` seconds; raises RequestFault where the prompt is too long.

    source: `expert`: the last good reply of an expert, or the policy's answer where none was asked or none gave one;
    `answer`: always the policy's answer. seed: used where the request has none; the episode's own follows from it
    and the conversation.
    """
    task = step_task(conversation, view_chars)
    asked = _WithConversation(pool, conversation, task)
    made = await run_episode(
        task,
        policy,
        asked,
        budget=budget,
        seed=seed if conversation.seed is None else conversation.seed,
        episode_deadline_s=deadline_s,
        turn_deadline_s=deadline_s,
    )
    if made.stop == StopReason.OVERLONG_PROMPT:
        raise RequestFault(made.error or "the prompt is too long", "messages", "context_length_exceeded")
    good = asked.good
    if good is None and (fault := _fault(made, asked.failed)) is not None:
        return fault, made
    tools = bool(conversation.callable_tools)
    if good is not None and source == "expert":
        return Step(read_reply(good.text, tools=tools), "expert"), made
    if made.answer:
        return Step(read_reply(made.answer, tools=tools), "answer"), made
    return Step(Reply(NO_ANSWER), "none"), made


def _fault(made: Trajectory, failed: Delegation | None) -> StepFault | None:
    """Why no expert was heard for want of machinery; None where the policy itself did without. A policy that goes on
    after its expert failed is no excuse: its words then say nothing about either."""
    if made.stop in (StopReason.INFRASTRUCTURE, StopReason.DEADLINE):
        return StepFault(made.error or made.stop, 504 if made.stop == StopReason.DEADLINE else 502)
    if failed is None:
        return None
    story = f"{failed.expert}@@{failed.skill}: {failed.outcome}: {failed.error or failed.text}"
    return StepFault(story, 504 if failed.outcome in (Outcome.DEADLINE, Outcome.TIMEOUT) else 503)
