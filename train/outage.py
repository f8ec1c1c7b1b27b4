"""Experts that are down hold the rollouts back instead of spoiling the batch.

One idea: a breaker around whole rollouts, in each worker's process. While too many of them are lost to experts, the
others wait and one at a time is tried; when an expert that was down answers, all go on, and what was lost is played
again with the seed it had, so that the step is the one that it would have been. A lost rollout is given out only when
no other is on its way that might still show an outage: the step waits for those anyway. The wait is bounded, and shown
by one small file a process in the run's folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experts.outcome import Outcome
from orchestrator.trajectory import Trajectory

WINDOW = 16  # rollouts that a verdict is made of
LEAST = 4  # lost ones before there is a verdict
MOST_REPLAYS = 8  # of one rollout, with experts that come and go
STALE_SECONDS = 900.0  # a trial may take an episode's deadline; older files belong to a process that is gone

_FAILURES = frozenset(outcome.value for outcome in Outcome if outcome.infrastructure)


def lost_to_experts(trajectory: Trajectory) -> str | None:
    """The expert that failed a rollout ("Expert: outcome"); None where it is valid, or lost for another reason."""
    if trajectory.valid:
        return None
    for turn in reversed(trajectory.turns):
        seen = turn.get("observation") or {}
        if seen.get("outcome") in _FAILURES:
            return f"{seen.get('expert')}: {seen['outcome']}"
    return None


def _name(lost: str) -> str:
    return lost.rpartition(": ")[0]


def _asked(trajectory: Trajectory) -> set[str]:
    """The experts that were really asked: the cache answers also for those that are down."""
    seen = [turn.get("observation") or {} for turn in trajectory.turns if turn["action"]["type"] == "search"]
    return {one["expert"] for one in seen if one and not one["cached"] and one["outcome"] != Outcome.INVALID_ACTION}


class OutageGate:
    """What every rollout of a process passes through.

    folder: where the pause is shown. above: share of the last `WINDOW` rollouts with calls. patience_s: longest pause;
    after it, lost rollouts come back lost, and the launcher ends the job. probe_s: between two trials.
    """

    def __init__(
        self,
        folder: Path,
        *,
        above: float,
        patience_s: float,
        probe_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = folder / f"{socket.gethostname()}-{os.getpid()}.json"
        self._above, self._patience, self._probe = above, patience_s, probe_s
        self._clock = clock
        self._recent: deque[str | None] = deque(maxlen=WINDOW)
        self._since: float | None = None
        self._next = 0.0
        self._why = ""
        self._down: set[str] = set()  # the experts that the pause is about
        self._elsewhere = 0  # trials in a row that came through without them
        self._waiting = 0
        self._trial = asyncio.Lock()
        self._playing = 0
        self._news = asyncio.Event()  # set, and put in place anew, when the lost ones that are held back may go on
        self._pauses = 0  # that have begun
        self._past_s = 0.0  # in those that are over
        self.given_up = False

    @property
    def paused(self) -> bool:
        return self._since is not None and not self.given_up

    @property
    def paused_s(self) -> float:
        """Seconds of all pauses so far, the present one included."""
        return self._past_s + (0.0 if self._since is None else self._clock() - self._since)

    async def play(self, once: Callable[[], Awaitable[Trajectory]]) -> Trajectory:
        """A rollout; `once` plays it, and may be called several times."""
        trajectory = None
        for _ in range(MOST_REPLAYS):
            while self.paused:
                trajectory = await self._try(once)
                if trajectory is not None and lost_to_experts(trajectory) is None:
                    return trajectory
            pauses = self._pauses
            trajectory = await self._noted(once)
            if lost_to_experts(trajectory) is None:
                return trajectory
            if self._playing and not self.paused:
                await self._news.wait()
            if self._pauses == pauses:
                return trajectory
        assert trajectory is not None
        return trajectory

    async def _noted(self, once: Callable[[], Awaitable[Trajectory]]) -> Trajectory:
        """One play that counts."""
        self._playing += 1
        try:
            trajectory = await once()
            self._note(trajectory)
            return trajectory
        finally:
            self._playing -= 1
            if self.paused or not self._playing:
                self._news.set()
                self._news = asyncio.Event()

    async def _try(self, once: Callable[[], Awaitable[Trajectory]]) -> Trajectory | None:
        """One rollout on trial, when its turn has come; None where the pause ended before."""
        self._waiting += 1
        try:
            async with self._trial:
                if not self.paused:
                    return None
                assert self._since is not None
                await asyncio.sleep(max(0.0, self._next - self._clock()))
                trajectory = await once()
                self._judge(trajectory, self._since)
                return trajectory
        finally:
            self._waiting -= 1

    def _judge(self, trial: Trajectory, since: float) -> None:
        """Ends the pause where an expert that was down has answered, or where nobody asks for it any more."""
        lost, asked = lost_to_experts(trial), _asked(trial)
        if lost is not None:
            self._why, self._next, self._elsewhere = lost, self._clock() + self._probe, 0
            self._down.add(_name(lost))
            self.given_up = self._clock() - since > self._patience
            self._show()
        elif asked:
            self._elsewhere += 1
            if asked & self._down or self._elsewhere >= WINDOW:
                self._resume()

    def _note(self, trajectory: Trajectory) -> None:
        lost = lost_to_experts(trajectory)
        if self._since is not None or (lost is None and not _asked(trajectory)):
            return  # what began before the pause, or asked nobody, says nothing about the experts
        self._recent.append(lost)
        count = sum(one is not None for one in self._recent)
        if count >= LEAST and count > self._above * len(self._recent):
            self._since = self._next = self._clock()
            self._pauses += 1
            self._why = lost or ""
            self._down, self._elsewhere = {_name(one) for one in self._recent if one is not None}, 0
            self._show()

    def _resume(self) -> None:
        self._past_s, self._since = self.paused_s, None
        self._recent.clear()
        self._file.unlink(missing_ok=True)

    def _show(self) -> None:
        assert self._since is not None
        record = {
            "seconds": round(self._clock() - self._since, 1),
            "why": self._why,
            "waiting": self._waiting,
            "given_up": self.given_up,
        }
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            partial = self._file.with_suffix(".partial")
            partial.write_text(json.dumps(record), encoding="utf-8")
            partial.replace(self._file)
        except OSError:
            pass  # a full disk must not end the wait; the launcher tells of the disk


@dataclass(frozen=True)
class Pause:
    """The longest pause among the processes of a run. seconds: how long. waiting: rollouts that are held back."""

    seconds: float
    why: str
    waiting: int
    given_up: bool


def pause_of(folder: Path, now: float | None = None) -> Pause | None:
    """What the files in `folder` tell; None where nobody waits. `now`: seconds since the epoch."""
    now = time.time() if now is None else now
    found: list[dict[str, Any]] = []
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            age = now - file.stat().st_mtime
            record = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # the pause ended while we looked
        if age < STALE_SECONDS:
            found.append(record)
    if not found:
        return None
    longest = max(found, key=lambda record: record["seconds"])
    return Pause(
        seconds=float(longest["seconds"]),
        why=str(longest["why"]),
        waiting=sum(int(record["waiting"]) for record in found),
        given_up=any(bool(record["given_up"]) for record in found),
    )


def forget_pauses(folder: Path) -> None:
    """Clears away what a killed job left behind."""
    for file in folder.glob("*.json") if folder.is_dir() else ():
        file.unlink(missing_ok=True)
