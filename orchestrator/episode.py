"""The episode: a finite-horizon POMDP as frozen data, and its transition functions.

The one idea: `begin`, `act`, `observe` and `fail` are pure; they take an episode and give the next one, and
every reason to stop is decided here, without any I/O. The runner, the training loop and the tests drive the
same code:

    episode = begin(task_id, prompt_ids, budget, registry=registry, tokenizer=tokenizer)
    while episode.stop is None:
        episode = act(episode, <turn sampled with at most episode.next_max_tokens tokens>)
        if episode.awaiting is not None:      # a Search to carry out, or a Malformed turn to explain
            episode = observe(episode, <observation of at most episode.observation_room tokens>)

Ids are the truth: the response is exactly the sampled ids and the observation ids, in order. The order in
which limits are checked after a turn: forbidden ids, answer, trajectory budget, malformed turns, horizon.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.action import Answer, Malformed, Search
from orchestrator.budget import Budget
from orchestrator.observation import Observation
from orchestrator.policy import PolicyTurn
from orchestrator.tokens import Tokenizer
from orchestrator.turn import Turn, read_turn

if TYPE_CHECKING:
    from orchestrator.task import Task
    from registry.registry import Registry


class StopReason(StrEnum):
    """Why an episode ended."""

    ANSWERED = "answered"
    HORIZON = "horizon"  # one call more than the horizon allows
    BUDGET_EXHAUSTED = "budget_exhausted"  # no room for the next turn or observation
    MALFORMED = "malformed"  # more malformed turns than are forgiven
    INFRASTRUCTURE = "infrastructure"  # the machinery failed, see `error`
    DEADLINE = "deadline"  # the turn or the episode took too long
    OVERLONG_PROMPT = "overlong_prompt"  # the prompt is over max_prompt_tokens; no turn was taken

    @property
    def policy_made(self) -> bool:
        """True where the policy's own turns ended the episode, so that it may be scored."""
        return self in (self.ANSWERED, self.HORIZON, self.BUDGET_EXHAUSTED, self.MALFORMED)


@dataclass(frozen=True)
class Rules:
    """What reading a turn depends on: known names, the policy's tokenizer, ids that it must never sample."""

    registry: Registry | None = None
    tokenizer: Tokenizer | None = None
    forbidden_ids: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Episode:
    """The context c_t = (question, pictures, a_1, o_1, ...) of one task. Treat as immutable."""

    task_id: str
    prompt_ids: tuple[int, ...] | None
    budget: Budget
    turns: tuple[Turn, ...] = ()
    stop: StopReason | None = None
    error: str | None = None
    task: Task | None = field(default=None, repr=False)
    rules: Rules = field(default_factory=Rules, repr=False, compare=False)

    @property
    def awaiting(self) -> Search | Malformed | None:
        """The action that waits for its observation."""
        if self.stop is not None or not self.turns or self.turns[-1].observation is not None:
            return None
        action = self.turns[-1].action
        return None if isinstance(action, Answer) else action

    @property
    def pending(self) -> Search | None:
        """The delegation to carry out now."""
        return self.awaiting if isinstance(self.awaiting, Search) else None

    @property
    def response_ids(self) -> tuple[int, ...] | None:
        """Sampled ids and observation ids in order; None where some part has no ids."""
        return None if (parts := self._parts()) is None else tuple(i for ids, *_ in parts for i in ids)

    @property
    def response_mask(self) -> tuple[int, ...] | None:
        """1 for ids that the policy sampled, 0 for all others; as long as `response_ids`."""
        return None if (parts := self._parts()) is None else tuple(m for ids, m, _ in parts for _ in ids)

    @property
    def response_logprobs(self) -> tuple[float, ...] | None:
        """Log-probabilities of the sampled ids, 0.0 elsewhere; None where one turn has none."""
        parts = self._parts()
        if parts is None or any(mask and ids and logprobs is None for ids, mask, logprobs in parts):
            return None
        return tuple(
            p for ids, _, logprobs in parts for p in (logprobs if logprobs is not None else (0.0,) * len(ids))
        )

    @property
    def response_length(self) -> int:
        """Tokens behind the prompt so far; estimated where ids are missing."""
        return sum(turn.n_tokens for turn in self.turns)

    @property
    def next_max_tokens(self) -> int:
        """Tokens that the next turn may take; at least 1 while the episode goes on, 0 when it has stopped."""
        if self.stop is not None:
            return 0
        return min(self.budget.max_turn_tokens, self.budget.max_trajectory_tokens - self.response_length)

    @property
    def observation_room(self) -> int:
        """Tokens that the next observation may take so that one more token fits behind it."""
        left = self.budget.max_trajectory_tokens - self.response_length - 1
        return max(0, min(self.budget.max_observation_tokens, left))

    @property
    def calls(self) -> int:
        """Delegations carried out."""
        return sum(isinstance(t.action, Search) and t.observation is not None for t in self.turns)

    @property
    def malformed(self) -> int:
        """Malformed turns."""
        return sum(isinstance(turn.action, Malformed) for turn in self.turns)

    @property
    def answer(self) -> str | None:
        """The answer's text, None where the episode holds none."""
        last = self.turns[-1].action if self.turns else None
        return last.text if self.stop is StopReason.ANSWERED and isinstance(last, Answer) else None

    @property
    def transcript(self) -> str:
        """Everything behind the prompt as text, turns and observations inline."""
        return "".join(
            t.text + t.closing + (t.observation.shown if t.observation else "") for t in self.turns
        )

    @property
    def valid(self) -> bool:
        """True where the episode ended by the policy's own turns and no call failed for want of machinery."""
        failed = any(t.observation is not None and t.observation.outcome.infrastructure for t in self.turns)
        return self.stop is not None and self.stop.policy_made and not failed

    def _parts(self) -> list[tuple[tuple[int, ...], int, tuple[float, ...] | None]] | None:
        """(ids, mask value, logprobs) of each piece of the response; None where a piece has no ids."""
        parts: list[tuple[tuple[int, ...], int, tuple[float, ...] | None]] = []
        for turn in self.turns:
            if turn.token_ids is None:
                return None
            parts.append((turn.token_ids, 1, turn.logprobs))
            if turn.closing:
                if turn.closing_ids is None:
                    return None
                parts.append((turn.closing_ids, 0, None))
            if turn.observation is not None:
                if turn.observation.token_ids is None:
                    return None
                parts.append((turn.observation.token_ids, 0, None))
        return parts


def begin(
    task_id: str,
    prompt_ids: Sequence[int] | None,
    budget: Budget,
    *,
    task: Task | None = None,
    registry: Registry | None = None,
    tokenizer: Tokenizer | None = None,
    forbidden_ids: Collection[int] = (),
) -> Episode:
    """A fresh episode; stopped at once as OVERLONG_PROMPT where the prompt is over its limit.

    prompt_ids: None for policies without ids. registry: names in calls are checked against it. tokenizer: the
    policy's; without it ids cannot be cut and lengths are estimated. forbidden_ids: image placeholders and
    the like; an episode in which the policy sampled one is invalid.
    """
    ids = None if prompt_ids is None else tuple(prompt_ids)
    rules = Rules(registry, tokenizer, frozenset(forbidden_ids))
    episode = Episode(task_id, ids, budget, task=task, rules=rules)
    if ids is not None and len(ids) > budget.max_prompt_tokens:
        limit = budget.max_prompt_tokens
        message = f"task {task_id}: the prompt takes {len(ids)} tokens, max_prompt_tokens is {limit}"
        return fail(episode, StopReason.OVERLONG_PROMPT, message)
    return episode


def act(episode: Episode, sampled: PolicyTurn) -> Episode:
    """The episode after one policy turn. Raises ValueError where no turn is due or ids are missing."""
    if episode.stop is not None or episode.awaiting is not None:
        raise ValueError(
            f"task {episode.task_id}: no turn is due ({episode.stop or 'an observation is awaited'})"
        )
    if episode.prompt_ids is not None and sampled.token_ids is None:
        raise ValueError(
            f"task {episode.task_id}: the prompt has token ids, turn {len(episode.turns) + 1} has none"
        )
    rules, budget = episode.rules, episode.budget
    turn = read_turn(
        sampled, limit=episode.next_max_tokens, tokenizer=rules.tokenizer, registry=rules.registry
    )
    calls = episode.calls
    episode = replace(episode, turns=(*episode.turns, turn))
    if forbidden := rules.forbidden_ids.intersection(turn.token_ids or ()):
        where = f"task {episode.task_id}, turn {len(episode.turns)}"
        message = (
            f"{where}: sampled the forbidden ids {sorted(forbidden)}; the sampler should have excluded them"
        )
        return fail(episode, StopReason.INFRASTRUCTURE, message)
    if isinstance(turn.action, Answer):
        return replace(episode, stop=StopReason.ANSWERED)
    if episode.response_length + 1 >= budget.max_trajectory_tokens:
        return replace(episode, stop=StopReason.BUDGET_EXHAUSTED)
    if isinstance(turn.action, Malformed) and episode.malformed > budget.malformed_turns:
        return replace(episode, stop=StopReason.MALFORMED)
    if isinstance(turn.action, Search) and calls >= budget.horizon:
        return replace(episode, stop=StopReason.HORIZON)
    return episode


def observe(episode: Episode, observation: Observation) -> Episode:
    """The episode after the observation of its awaited action.

    Where the observation does not fit into the trajectory budget it stays in the record without tokens and
    the episode stops as BUDGET_EXHAUSTED. Raises ValueError where none is awaited or ids are missing.
    """
    if episode.awaiting is None:
        raise ValueError(f"task {episode.task_id}: no observation is awaited")
    if episode.prompt_ids is not None and observation.token_ids is None:
        raise ValueError(f"task {episode.task_id}: the prompt has token ids, the observation has none")
    length = observation.n_tokens if observation.token_ids is None else len(observation.token_ids)
    fits = 0 < length < episode.budget.max_trajectory_tokens - episode.response_length
    if not fits:
        ids = None if observation.token_ids is None else ()
        observation = replace(observation, token_ids=ids, shown="", n_tokens=0, truncated=True)
    turns = (*episode.turns[:-1], replace(episode.turns[-1], observation=observation))
    return replace(episode, turns=turns, stop=None if fits else StopReason.BUDGET_EXHAUSTED)


def fail(episode: Episode, reason: StopReason, error: str) -> Episode:
    """The episode ended from outside (INFRASTRUCTURE, DEADLINE, OVERLONG_PROMPT); what it has so far is
    kept."""
    return replace(episode, stop=reason, error=error)
