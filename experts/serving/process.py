"""`ServerProcess`: one server as the launcher sees it, and finding what a killed launcher left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

MARK = "MAESTRO_SERVING"  # every process of a launch inherits it; its value is the launch's endpoints file
_KEEPER = Path(__file__).with_name("keeper.py")
_LONGEST_LOG_BYTES = 50_000_000
_POLL_S = 0.1


class ServerProcess:
    """A running server with its keeper. Make it in the main thread: it dies with the thread that made it.

    grace_s: seconds between the signal `polite` and SIGKILL. log: gets the server's output; an old one that has grown
    large is kept once as `<name>.1`.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        log: Path,
        mark: str,
        grace_s: float,
        polite: int = signal.SIGTERM,
    ) -> None:
        self._grace_s = grace_s
        log.parent.mkdir(parents=True, exist_ok=True)
        if log.exists() and log.stat().st_size > _LONGEST_LOG_BYTES:
            log.replace(log.with_name(log.name + ".1"))
        reader, self._lifeline = os.pipe()
        try:
            with log.open("ab") as output:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", str(_KEEPER), str(grace_s), str(int(polite)), *command],
                    env={**os.environ, **env, MARK: mark},
                    stdin=reader,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(reader)

    @property
    def pid(self) -> int:
        """The keeper's process id, which is also the id of the server's session."""
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code, 128 + signal where one ended the server; None while it runs."""
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    async def wait(self) -> int:
        """Until the server is gone with everything it started; its exit code."""
        while (code := self.poll()) is None:
            await asyncio.sleep(_POLL_S)
        self._close()
        self._sweep()  # nothing, unless the keeper itself was killed
        return code

    def terminate(self) -> None:
        """Ask for the end; by force after the grace time."""
        with contextlib.suppress(OSError):
            self._process.terminate()

    def kill(self) -> None:
        """By force, at once."""
        self._sweep()
        self._close()

    async def end(self) -> None:
        """SIGTERM, the grace time, SIGKILL; returns when all is gone."""
        self.terminate()
        try:
            async with asyncio.timeout(self._grace_s + 10):
                await self.wait()
        finally:  # a keeper that hangs, or a caller in a hurry
            if self.poll() is None:
                self.kill()
                self._process.wait(timeout=10)

    def _sweep(self) -> None:
        for pid in _session(self.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _close(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


def leftovers(mark: str) -> list[int]:
    """Live processes of a launch with that mark, but for this process."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if int(entry.name) != os.getpid() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return sorted(found)


def clear_leftovers(mark: str, patience_s: float = 10.0) -> int:
    """End them: politely, then by force. Returns how many there were."""
    first = leftovers(mark)
    deadline = time.monotonic() + patience_s
    number = signal.SIGTERM
    while alive := leftovers(mark):
        for pid in alive:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        if time.monotonic() > deadline + patience_s:
            break
        number = signal.SIGKILL if time.monotonic() > deadline else number
        time.sleep(0.2)
    return len(first)


def _session(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(entry.name)) == leader:
                found.append(int(entry.name))
    return found
