"""Who writes the turns.

The one idea: a policy is anything with a name that, given an episode, writes the next turn. Policies that
work on token ids say so by also being a `TokenPolicy`; then ids are the truth and text is a view of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from orchestrator.tokens import Tokenizer

if TYPE_CHECKING:
    from orchestrator.episode import Episode
    from orchestrator.task import Task


@dataclass(frozen=True)
class PolicyTurn:
    """One generation, exactly as sampled.

    text: what the policy wrote (a view where token_ids are given). token_ids: the sampled ids, None where the
    policy has none. logprobs: of the sampled ids under the distribution they were drawn from, None where
    unknown.
    finish_reason: "stop" (also: the stop string itself), "length", or what a server said.
    """

    text: str
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    finish_reason: str = "stop"
    latency_s: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __post_init__(self) -> None:
        if self.logprobs is not None and len(self.logprobs) != len(self.token_ids or ()):
            raise ValueError(f"{len(self.logprobs)} logprobs for {len(self.token_ids or ())} token ids")


class InfrastructureError(Exception):
    """The policy's machinery failed (server, deadline, engine); says nothing about the policy's skill."""


class Policy(Protocol):
    """Writes turns. `act` may raise InfrastructureError; the runner catches it and marks the episode invalid.

    `episode.task` holds question and pictures, `episode.turns` what happened so far. Same seed, same episode:
    same turn, up to the floating-point noise of the engine.
    """

    @property
    def name(self) -> str: ...

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class TokenPolicy(Protocol):
    """A policy with token ids. `tokenizer` may be None where only its server knows the ids."""

    @property
    def name(self) -> str: ...

    @property
    def tokenizer(self) -> Tokenizer | None: ...

    async def prompt_ids(self, task: Task) -> tuple[int, ...] | None: ...

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class AnswersDirectly(Protocol):
    """A policy that can be made to answer at once, without any delegation."""

    async def answer_directly(self, task: Task, *, seed: int, max_tokens: int) -> PolicyTurn: ...
