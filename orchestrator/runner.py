"""Runs episodes: the I/O around the pure core.

The one idea: every wait has a deadline and every fault stays in its episode. `run_episode` always comes back
with a Trajectory; `run_episodes` keeps `concurrency` of them going, whatever one of them does. Only a
cancellation, and a fault in the caller's own `on_done`, end the whole.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeVar

from experts.clients import deadlines
from experts.images import Picture
from experts.outcome import Delegation, Outcome
from orchestrator.action import Malformed, Search
from orchestrator.budget import Budget
from orchestrator.episode import Episode, StopReason, act, begin, fail, observe
from orchestrator.observation import Observation, check_room, from_delegation, from_malformed
from orchestrator.policy import InfrastructureError, Policy, TokenPolicy
from orchestrator.seeds import episode_seed, turn_seed
from orchestrator.task import Task
from orchestrator.tokens import Side, Tokenizer
from orchestrator.trajectory import Trajectory, from_episode
from orchestrator.turn_frame import TurnFrame
from registry.registry import Registry

Reply = TypeVar("Reply")

_GRACE_S = 1.0  # what a pool may overrun its own deadline before the runner gives the call up


class Delegates(Protocol):
    """What the runner needs of `experts.pool.ExpertPool`."""

    @property
    def registry(self) -> Registry: ...

    async def delegate(
        self,
        expert: str,
        skill: str,
        question: str,
        pictures: Sequence[Picture],
        *,
        deadline_s: float | None = None,
    ) -> Delegation: ...


@dataclass(frozen=True)
class Event:
    """Something that just happened; `episode` is the state after it."""

    kind: Literal["begin", "turn", "observation", "end"]
    episode: Episode


OnEvent = Callable[[Event], None]


async def run_episodes(
    rows: Iterable[Task],
    policy: Policy,
    pool: Delegates,
    *,
    budget: Budget,
    concurrency: int = 16,
    episode_deadline_s: float = 300.0,
    turn_deadline_s: float = 120.0,
    seed: int = 0,
    samples: int = 1,
    observation_side: Side = "head",
    versions: Mapping[str, str] | None = None,
    on_done: Callable[[Trajectory], None],
    on_event: OnEvent | None = None,
) -> int:
    """Runs every row `samples` times, at most `concurrency` episodes at once; returns how many were run.

    rows are drawn as they are needed. on_done gets each trajectory as it finishes, in no fixed order; an
    exception from it, or from `rows`, cancels the rest and is raised. Raises UserFault where the budget
    cannot hold an observation of this policy's tokenizer.
    """
    check_room(budget.max_observation_tokens, _tokenizer(policy))
    work = _work(rows, samples)
    done = 0

    async def worker() -> None:
        nonlocal done
        for task, sample in work:
            trajectory = await run_episode(
                task,
                policy,
                pool,
                budget=budget,
                seed=seed,
                sample=sample,
                episode_deadline_s=episode_deadline_s,
                turn_deadline_s=turn_deadline_s,
                observation_side=observation_side,
                versions=versions,
                on_event=on_event,
            )
            on_done(trajectory)
            done += 1

    workers = [asyncio.create_task(worker()) for _ in range(max(1, concurrency))]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return done


async def run_episode(
    task: Task,
    policy: Policy,
    pool: Delegates,
    *,
    budget: Budget,
    seed: int = 0,
    sample: int = 0,
    episode_deadline_s: float = 300.0,
    turn_deadline_s: float = 120.0,
    observation_side: Side = "head",
    versions: Mapping[str, str] | None = None,
    on_event: OnEvent | None = None,
) -> Trajectory:
    """One episode from prompt to record. Raises nothing but a cancellation: faults end in the record.

    seed: the run's; the episode's own follows from (seed, row id, sample). turn_deadline_s: for one turn of
    the policy, and for one delegation. on_event: called after every step.
    """
    started = time.perf_counter()
    run = _Run(policy, pool, turn_deadline_s, observation_side, on_event or _ignore)
    own_seed = episode_seed(seed, task.row_id, sample)
    run.episode = Episode(task.row_id, None, budget, task=task)
    clock = asyncio.timeout(episode_deadline_s)
    try:
        # Told to the pool as well, a call that the end cuts off comes back with what is known of it.
        with deadlines.within(episode_deadline_s, "episode"):
            async with clock:
                await run.drive(task, budget, own_seed)
    except TimeoutError as error:
        if clock.expired():
            run.end(StopReason.DEADLINE, f"the episode took longer than {episode_deadline_s:g} s")
        else:
            run.end(StopReason.INFRASTRUCTURE, run.at(error))
    except _TurnTimeout as error:
        run.end(StopReason.DEADLINE, str(error))
    except Exception as error:
        run.end(StopReason.INFRASTRUCTURE, run.at(error))
    trajectory = from_episode(
        run.episode,
        policy=policy.name,
        seed=own_seed,
        sample=sample,
        total_s=time.perf_counter() - started,
        versions={"registry": pool.registry.digest, **(versions or {})},
    )
    run.on_event(Event("end", run.episode))
    return trajectory


class _TurnTimeout(Exception):
    """The policy took longer than its turn deadline."""


class _Run:
    """One episode on its way; `episode` is always the newest state, so a deadline loses nothing."""

    episode: Episode

    def __init__(
        self, policy: Policy, pool: Delegates, turn_deadline_s: float, side: Side, on_event: OnEvent
    ) -> None:
        self.policy, self.pool, self.on_event = policy, pool, on_event
        self.turn_deadline_s = turn_deadline_s
        self.side: Side = side
        self.border = "policy"  # whose code is running, for messages

    async def drive(self, task: Task, budget: Budget, seed: int) -> None:
        """begin, act, observe until the episode stops."""
        ids, tokenizer = None, _tokenizer(self.policy)
        forbidden = getattr(self.policy, "forbidden_ids", ())
        if isinstance(self.policy, TokenPolicy):
            ids = await self._within(self.policy.prompt_ids(task))
        self._step(
            "begin",
            begin(
                task.row_id,
                ids,
                budget,
                task=task,
                registry=self.pool.registry,
                tokenizer=tokenizer,
                forbidden_ids=forbidden,
            ),
        )
        while self.episode.stop is None:
            self.border = "policy"
            own = turn_seed(seed, len(self.episode.turns))
            self._step("turn", act(self.episode, await self._within(self.policy.act(self.episode, seed=own))))
            action = self.episode.awaiting
            if action is not None:
                self._step(
                    "observation", observe(self.episode, await self._observation(action, task, tokenizer))
                )

    async def _within(self, call: Awaitable[Reply]) -> Reply:
        """The policy's reply within the turn deadline."""
        clock = asyncio.timeout(self.turn_deadline_s)
        try:
            async with clock:
                return await call
        except TimeoutError:
            if not clock.expired():
                raise
            number = len(self.episode.turns) + 1
            message = f"policy {self.policy.name}, turn {number}: nothing within {self.turn_deadline_s:g} s"
            raise _TurnTimeout(message) from None

    async def _observation(
        self, action: Search | Malformed, task: Task, tokenizer: Tokenizer | None
    ) -> Observation:
        room, frame = self.episode.observation_room, self._frame()
        if isinstance(action, Malformed):
            return from_malformed(action, tokenizer, max_tokens=room, frame=frame)
        self.border = f"expert call {action.expert}@@{action.skill}"
        delegation = await self._delegate(action, task)
        return from_delegation(delegation, tokenizer, max_tokens=room, side=self.side, frame=frame)

    def _frame(self) -> Callable[[str], str]:
        """What puts the next observation into a chat turn of its own, where the policy was trained so."""
        frame: TurnFrame | None = getattr(self.policy, "frame", None)
        if frame is None:
            return str
        turn = self.episode.turns[-1]
        return partial(frame.around, turn=turn.text + turn.closing)

    async def _delegate(self, call: Search, task: Task) -> Delegation:
        limit = self.turn_deadline_s
        clock = asyncio.timeout(limit + _GRACE_S)
        try:
            async with clock:
                return await self.pool.delegate(
                    call.expert, call.skill, call.query, task.pictures, deadline_s=limit
                )
        except TimeoutError:
            if not clock.expired():
                raise
            text = f"{call.expert} did not answer within {limit:g} s."
            return Delegation(Outcome.DEADLINE, text, call.expert, call.skill, latency_s=limit, error=text)

    def _step(self, kind: Literal["begin", "turn", "observation"], episode: Episode) -> None:
        self.episode = episode
        self.on_event(Event(kind, episode))

    def end(self, reason: StopReason, error: str) -> None:
        self.episode = fail(self.episode, reason, error)

    def at(self, error: Exception) -> str:
        """An exception as one sentence that names the border where it came out."""
        what = str(error) if isinstance(error, InfrastructureError) else f"{type(error).__name__}: {error}"
        who = f"policy {self.policy.name}" if self.border == "policy" else self.border
        return f"row {self.episode.task_id}, {who}: {what}"


def _work(rows: Iterable[Task], samples: int) -> Iterator[tuple[Task, int]]:
    for task in rows:
        for sample in range(samples):
            yield task, sample


def _tokenizer(policy: Policy) -> Tokenizer | None:
    return policy.tokenizer if isinstance(policy, TokenPolicy) else getattr(policy, "tokenizer", None)


def _ignore(event: Event) -> None:
    """No one listens."""
