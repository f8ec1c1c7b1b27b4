"""The phases of an evaluation: who is told of their progress, and how long each took.

The one idea: the evaluation knows no terminal. It names a phase and its number of steps and gets back something to
call after each step; wall seconds are added up over the invocations of a folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

StartPhase = Callable[[str, int | None], Callable[[], None]]
"""Called with a phase's name and number of steps (``None``: not known beforehand); returns what is called after each
step."""


def silent(name: str, steps: int | None) -> Callable[[], None]:
    """Tells nobody."""
    return lambda: None


class Clock:
    """Wall seconds of each phase in a folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "seconds.json"
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = None
        known = found.items() if isinstance(found, dict) else ()
        self.seconds: dict[str, float] = {name: spent for name, spent in known if isinstance(spent, int | float)}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time that its block takes, however it ends."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - started, 3)
            try:
                self._path.write_text(json.dumps(self.seconds, indent=1) + "\n", encoding="utf-8")
            except OSError:
                pass  # timings are a convenience; the journal reports a full disk
