"""SIGTERM, as a scheduler sends it: end, but save first where there is time.

One idea: the signal ends the command at once, except while somebody holds it; the holder then saves and ends by itself.
A second signal never waits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from train.checkpoint_hook import RECORD, SAVE_NOW
from train.checkpoints import complete_steps

EXIT_CODE = 143
_LINE_SECONDS = 5.0  # from a whole checkpoint to the step's line in verl's log; a validation may come between


class Terminated(SystemExit):
    """The command was asked to end. It is a SystemExit, so that nothing on the way takes it for a fault.

    text: what a person is told.
    """

    def __init__(self, text: str = "ended on SIGTERM") -> None:
        super().__init__(EXIT_CODE)
        self.text = text


class Termination:
    """A context in which SIGTERM raises Terminated in the main thread; outside the main thread it changes nothing."""

    def __init__(self) -> None:
        self.asked = False
        self._held = False
        self._process = os.getpid()
        self._before: Any = None

    def __enter__(self) -> Termination:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._on_signal)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def _on_signal(self, *_: object) -> None:
        if self._held and not self.asked and os.getpid() == self._process:
            self.asked = True
            return
        raise Terminated

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within it the first signal is only noted in `asked`."""
        self._held = True
        try:
            yield
        finally:
            self._held = False


class SaveNow:
    """Asks the job to save the step under way; `over` tells when it has, or when the time is up.

    grace: seconds. With 0 nothing is asked.
    """

    def __init__(self, checkpoints: Path, grace: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = checkpoints, clock
        self._before = _newest(checkpoints)
        self._end = clock() + grace
        self._saved_at: float | None = None
        if grace > 0:
            with contextlib.suppress(OSError):  # a full disk: then the time passes and nothing new is there
                (checkpoints / SAVE_NOW).touch()

    def over(self, last_step: int) -> bool:
        """last_step: the newest step whose line has been read."""
        now = self._clock()
        if now >= self._end:
            return True
        saved = _newest(self._folder)
        if saved <= self._before:
            return False
        self._saved_at = now if self._saved_at is None else self._saved_at
        return last_step >= saved or now - self._saved_at > _LINE_SECONDS


def forget_request(checkpoints: Path) -> None:
    """A job that starts must not find the request that ended the one before."""
    (checkpoints / SAVE_NOW).unlink(missing_ok=True)


def _newest(folder: Path) -> int:
    """Step of the newest checkpoint that is whole, its record included; 0 where there is none."""
    return max((s for s in complete_steps(folder) if (folder / f"global_step_{s}" / RECORD).exists()), default=0)
