"""A second request beside one that is taking long.

The first good answer wins and the other request is cancelled; a failure only counts once both have failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def first_good(
    first: Coroutine[Any, Any, T], second: Callable[[], Coroutine[Any, Any, T | None]], after_s: float
) -> T:
    """The result of `first`, or of `second()` where that was started, `after_s` seconds later, and came first.
    A `second()` of None does not count. Raises what `first` raised when neither gave a result."""
    running = [asyncio.ensure_future(first)]
    try:
        await asyncio.wait(running, timeout=after_s)
        if not running[0].done():
            running.append(asyncio.ensure_future(second()))  # type: ignore[arg-type]
        pending = set(running)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                good = not task.cancelled() and task.exception() is None
                if good and (result := task.result()) is not None:
                    return result
        return running[0].result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
