"""Time limits around many delegations: an episode's, a batch's.

The one idea: a limit holds for whatever starts inside its block, tasks included, and the nearest end wins, so
nobody has to hand remaining seconds down through every call.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

OWN = "delegation"  # whose limit it is where nothing around a delegation ends sooner


@dataclass(frozen=True)
class Bound:
    """An end on the monotonic clock, and what it is the end of."""

    at: float
    of: str

    def left_s(self) -> float:
        """Seconds until then; negative when it is past."""
        return self.at - time.monotonic()


_NEAREST: ContextVar[Bound | None] = ContextVar("maestro_nearest_deadline", default=None)


@contextmanager
def within(seconds: float, of: str = "batch") -> Iterator[None]:
    """Delegations that start inside end within `seconds` from now, counted from the block's start."""
    bound, outer = Bound(time.monotonic() + seconds, of), _NEAREST.get()
    token = _NEAREST.set(bound if outer is None or bound.at < outer.at else outer)
    try:
        yield
    finally:
        _NEAREST.reset(token)


def nearest(seconds: float, of: str = OWN) -> tuple[float, str]:
    """The time left for something that may take `seconds` by itself, and whose limit that is."""
    bound = _NEAREST.get()
    if bound is None or bound.left_s() >= seconds:
        return seconds, of
    return bound.left_s(), bound.of
