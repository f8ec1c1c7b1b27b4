"""Runs all shards to their ends: starts, restarts, shows progress, and gathers what could not be done.

The one idea: one shard's trouble is not the others'. They run to their ends, so that what is left to the next start of
the same command is as little as possible; only then is the trouble told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from eval.engines.events import Began, Crew, Died, Event, Finished, Progressed, Refused
from eval.engines.progress import Board, Show
from eval.engines.restarts import Restarts
from eval.shard import Shard
from registry.errors import UserFault

POLL_S = 1.0
PATIENCE_S = 300.0
"""How long no node may take a shard while none is running."""
_SHOWN = 5
Tell = Callable[[str], None]


class Supervisor:
    """Supervises the shards of one evaluation. ``tell``: is told where shards run and what became of dead ones;
    ``warn``: each warning of a shard's run, the same one of several shards once."""

    def __init__(
        self,
        shards: Sequence[Shard],
        crew: Crew,
        *,
        show: Show,
        tell: Tell,
        warn: Tell = lambda text: None,
        restarts: Restarts | None = None,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shards, self._crew, self._show, self._tell = tuple(shards), crew, show, tell
        self._restarts = restarts or Restarts()
        self._patience_s, self._clock = patience_s, clock
        self._warn, self._warned = warn, set[str]()
        self._board = Board(shards)
        self._placed: set[Shard] = set()  # a node has it
        self._started: set[Shard] = set()  # asked for, and not ended
        self._due: dict[Shard, float] = {}  # when a dead one starts again
        self._finished: dict[Shard, Finished] = {}
        self._given_up: dict[Shard, str] = {}
        self._idle_since = clock()

    def run(self) -> Mapping[Shard, Finished]:
        """Run every shard; however it ends, no worker is left.

        Raises:
            UserFault: shards could not be finished (each with its reason), or no node takes any for ``patience_s``
                seconds.
        """
        try:
            for shard in self._shards:
                self._start(shard)
            while self._started or self._due:
                self._start_due()
                for event in self._crew.poll(POLL_S):
                    self._take(event)
                for name, (done, steps) in self._board.total().items():
                    self._show(name, done, steps)
                self._check_idle()
        finally:
            self._crew.stop()
        if self._given_up:
            raise self._failure()
        return self._finished

    def _start(self, shard: Shard) -> None:
        self._started.add(shard)
        self._crew.start(shard)

    def _start_due(self) -> None:
        now = self._clock()
        for shard in [shard for shard, due in self._due.items() if due <= now]:
            del self._due[shard]
            self._board.restart(shard)
            self._start(shard)

    def _take(self, event: Event) -> None:
        shard = event.shard
        if isinstance(event, Progressed):
            self._board.update(shard, event.phases)
            self._pass_on(event.warnings)
            return
        if isinstance(event, Began):
            self._placed.add(shard)
            self._tell(f"shard {shard} runs on {event.node}")
            return
        self._started.discard(shard)
        self._placed.discard(shard)
        self._idle_since = self._clock()
        if isinstance(event, Finished):
            self._finished[shard] = event
        elif isinstance(event, Refused):
            self._given_up[shard] = str(event.fault)
            self._tell(f"shard {shard} cannot go on: {event.fault.what}")
        else:
            self._bury(event)

    def _pass_on(self, warnings: Sequence[str]) -> None:
        """Each once: all shards were begun with the same versions, as a rule."""
        for line in warnings:
            if line not in self._warned:
                self._warned.add(line)
                self._warn(line)

    def _bury(self, event: Died) -> None:
        wait = self._restarts.after_death(event.shard)
        deaths = self._restarts.deaths(event.shard)
        if wait is None:
            self._given_up[event.shard] = f"died {deaths} times, at last: {event.reason}"
            self._tell(f"shard {event.shard} is given up: died {deaths} times, at last: {event.reason}")
            return
        self._due[event.shard] = self._clock() + wait
        self._tell(
            f"shard {event.shard} died ({event.reason}); it goes on in {wait:g} s, "
            f"restart {deaths} of {self._restarts.most}"
        )

    def _check_idle(self) -> None:
        now = self._clock()
        if self._placed or self._due or not self._started:
            self._idle_since = now
        elif now - self._idle_since > self._patience_s:
            raise UserFault(
                f"no node has taken a shard for {self._patience_s:g} s",
                fix="each needs one free CPU: see `ray status`, end other jobs or add nodes, then start the same "
                "command again",
            )

    def _failure(self) -> UserFault:
        reasons: dict[str, list[str]] = {}
        for shard, reason in sorted(self._given_up.items()):
            reasons.setdefault(reason, []).append(str(shard))
        lines = [f"  {', '.join(shards)}: {reason}" for reason, shards in list(reasons.items())[:_SHOWN]]
        if len(reasons) > _SHOWN:
            lines.append(f"  ... and {len(reasons) - _SHOWN} more reasons")
        return UserFault(
            f"{len(self._given_up)} of {len(self._shards)} shards are not finished:\n" + "\n".join(lines),
            fix="mend the cause and start the same command again: what is finished is kept",
        )
