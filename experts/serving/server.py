"""`Server`: one server from its first start to its end, restarted whenever it dies.

The one idea: a loop of start, wait until it really answers, watch, and back off; whatever goes wrong on the way
is one reason, and after too many of them in a row the server is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from experts.serving.launch import Launch
from experts.serving.ports import HOST, free_port, is_free
from experts.serving.probe import Probe, ProbeFault, shown
from experts.serving.process import ServerProcess
from registry.errors import UserFault

_TAIL_BYTES = 4000


@dataclass(frozen=True)
class Rules:
    """Times in seconds.

    start_s: until a server must have answered a question, downloads included. restarts: in a row, before a
    server is given up; one that answered for `stable_s` starts anew. pause_s: before the first restart, doubled
    each time up to longest_pause_s. health_s: between looks at a running server; it counts as hung after
    `misses` in a row. drain_s: for requests that run when the end is asked for. grace_s: between SIGTERM
    and SIGKILL.
    """

    start_s: float = 1800.0
    question_s: float = 300.0
    restarts: int = 5
    stable_s: float = 120.0
    pause_s: float = 1.0
    longest_pause_s: float = 60.0
    health_s: float = 5.0
    misses: int = 6
    drain_s: float = 30.0
    grace_s: float = 15.0


class State(StrEnum):
    """Where a server is."""

    WAITING = "waiting"  # for its turn to be loaded
    STARTING = "starting"
    READY = "ready"
    RESTING = "resting"  # it died; a pause before the next start
    FAILED = "failed"  # given up
    STOPPED = "stopped"


class Server:
    """Keeps one `launch` going. `say` gets lines for people, `changed` is called at every change of state.

    turns: locks by device name; held while a server loads, because vLLM measures free memory meanwhile.
    ports: those of all servers of this launch, shared.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        rules: Rules,
        probe: Probe,
        log: Path,
        mark: str,
        turns: Mapping[str, asyncio.Lock],
        ports: set[int],
        say: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self.launch, self.rules, self.log = launch, rules, log
        self.state = State.WAITING
        self.reason = ""
        self.starts = 0
        self.port: int | None = None
        self.process: ServerProcess | None = None
        self._probe, self._mark, self._turns, self._ports = probe, mark, turns, ports
        self._say, self._changed = say, changed
        self._log_from = 0  # where the log of this life begins

    @property
    def base(self) -> str:
        """The server's address, without /v1."""
        return f"http://{HOST}:{self.port}"

    async def run(self) -> None:
        """Until the server is given up; cancel it to stop. Never raises for what the server does."""
        failures = 0
        while True:
            lived = await self._once()
            if self.state is State.FAILED:
                break
            failures = 1 if lived >= self.rules.stable_s else failures + 1
            if failures > self.rules.restarts:
                self._turn(State.FAILED, f"given up after {failures} failures in a row; last: {self.reason}")
                break
            pause = min(self.rules.pause_s * 2 ** (failures - 1), self.rules.longest_pause_s)
            self._turn(State.RESTING, self.reason, f"starts again in {pause:g} s")
            await asyncio.sleep(pause)

    async def drain(self) -> None:
        """Wait until its requests are answered, as long as the rules allow."""
        deadline = time.monotonic() + self.rules.drain_s
        while self.state is State.READY and time.monotonic() < deadline:
            if await self._probe.queue(self.base) in ((0, 0), None):
                return
            await asyncio.sleep(0.25)

    async def end(self) -> None:
        """Stop the process, if there is one."""
        await self._put_down()
        if self.state is not State.FAILED:
            self._turn(State.STOPPED)

    async def _put_down(self) -> None:
        if self.process is not None:
            with contextlib.suppress(TimeoutError):
                await self.process.end()
            self.process = None

    async def _once(self) -> float:
        """One life: start, answer, watch; seconds for which it answered. `reason` says how it ended."""
        started = None
        try:
            async with contextlib.AsyncExitStack() as stack:
                for device in sorted(self.launch.devices):
                    await stack.enter_async_context(self._turns[device])
                try:
                    await self._start()
                except ProbeFault:
                    await self._put_down()  # before the next one measures what is free
                    raise
            started = time.monotonic()
            await self._watch()
        except ProbeFault as fault:
            self.reason = str(fault)
            if fault.final:
                self._turn(State.FAILED, self.reason)
            elif self.state is State.READY:
                self.state = State.RESTING
                self._changed()  # nobody is sent there while it is put down
        except (OSError, UserFault) as fault:
            self._turn(State.FAILED, str(fault))
        # Not reached when cancelled: then the process goes on until its requests are answered.
        await self._put_down()
        return 0.0 if started is None else time.monotonic() - started

    async def _start(self) -> None:
        """Raises ProbeFault when it does not come up."""
        self._choose_port()
        assert self.port is not None
        self.starts += 1
        self._log_from = self.log.stat().st_size if self.log.exists() else 0
        self.process = ServerProcess(
            self.launch.command(self.port),
            {**self.launch.env, **self.launch.secrets()},
            log=self.log,
            mark=self._mark,
            grace_s=self.rules.grace_s,
            polite=self.launch.polite,
        )
        self._turn(State.STARTING, "", f"starts at {self.base} on {', '.join(self.launch.devices)}, log {self.log}")
        begun = time.monotonic()
        await self._unless_gone(self._answers(begun + self.rules.start_s))
        self._turn(State.READY, "", f"answers at {self.base} after {time.monotonic() - begun:.1f} s")

    def _choose_port(self) -> None:
        wanted = self.port or self.launch.wanted_port
        if self.port is not None and is_free(self.port):
            return
        if self.launch.port_is_fixed and not is_free(wanted):
            # Another port would only be watched, not used; the one that holds it may be about to end.
            raise ProbeFault(f"port {wanted}, at which it would listen, is in use")
        if self.port is not None:
            self._ports.discard(self.port)
        self.port = free_port(wanted, self._ports)
        self._ports.add(self.port)
        if self.port != wanted:
            self._say(f"{self.launch.name}: port {wanted} is in use, so it gets {self.port}")

    async def _answers(self, deadline: float) -> None:
        while not await self._probe.healthy(self.base + self.launch.health):
            if time.monotonic() > deadline:
                raise ProbeFault(f"not healthy within {self.rules.start_s:g} s")
            await asyncio.sleep(0.3)
        for model in self.launch.models:
            await self._probe.check_name(self.base, model)
            left = max(1.0, min(self.rules.question_s, deadline - time.monotonic()))
            await self._probe.ask(self.base, model, left)

    async def _watch(self) -> None:
        """Until it dies or hangs. Raises ProbeFault, always."""

        async def look() -> None:
            misses = 0
            while misses < self.rules.misses:
                await asyncio.sleep(self.rules.health_s)
                misses = (
                    0 if await self._probe.healthy(self.base + self.launch.health, self.rules.health_s) else misses + 1
                )
            raise ProbeFault(f"no sign of health {self.rules.misses} times in a row")

        await self._unless_gone(look())

    async def _unless_gone(self, work: Coroutine[Any, Any, None]) -> None:
        """`work`, or ProbeFault as soon as the process is gone."""
        assert self.process is not None
        tasks = [asyncio.ensure_future(self.process.wait()), asyncio.ensure_future(work)]
        gone, worked = tasks
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise ProbeFault(self._last_words(gone.result()))
            worked.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _last_words(self, code: int) -> str:
        if code > 128:  # from outside: what stands in the log is about something else
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(code - 128).name}"
        return f"ended with exit code {code}{self._tail()}"

    def _tail(self) -> str:
        """The last telling line of its log."""
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            size = self.log.stat().st_size
            file.seek(max(self._log_from if self._log_from <= size else 0, size - _TAIL_BYTES))
            lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
            telling = [line for line in lines if "Error" in line or "error" in line]
            if lines:
                return f"; its log says: {shown((telling or lines)[-1])}"
        return ""

    def _turn(self, state: State, reason: str = "", more: str = "") -> None:
        self.state, self.reason = state, reason
        words = "; ".join(word for word in (reason, more) if word)
        self._say(f"{self.launch.name}: {words or state}")
        self._changed()
