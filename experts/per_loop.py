"""A value per running event loop.

The one idea: semaphores and HTTP clients belong to the loop they were first used in, while a pool may serve
several loops (a command line, a worker's own loop). Each loop gets its own, made on first use, forgotten
after the loop was closed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes a value with `factory` once for each event loop."""

    def __init__(self, factory: Callable[[], T]) -> None:
        self._factory = factory
        self._lock = threading.Lock()
        self._values: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self) -> T:
        """The running loop's value."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._values:
                # Values refer to their loops, so nothing but this would ever let them go.
                for closed in [known for known in self._values if known.is_closed()]:
                    del self._values[closed]
                self._values[loop] = self._factory()
            return self._values[loop]

    def pop(self) -> T | None:
        """Take the running loop's value out, if it has one."""
        with self._lock:
            return self._values.pop(asyncio.get_running_loop(), None)
