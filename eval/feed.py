"""Work for many workers out of one iterator that is slow to give (it reads files and decodes pictures).

The one idea: the iterator runs in a thread, a few items ahead and no more, so that the event loop never waits for a
picture and memory holds no more of them than are about to be used.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from itertools import islice
from typing import Generic, TypeVar

Item = TypeVar("Item")
_BATCH = 8  # drawn at once: a change of threads costs about as much as a small picture


class Feed(Generic[Item]):
    """Items in order, each given once. Up to twice ``batch`` items are drawn ahead."""

    def __init__(self, items: Generator[Item, None, None], *, batch: int = _BATCH) -> None:
        self._items, self._batch = items, batch
        self._ready: deque[Item] = deque()
        self._coming: asyncio.Task[list[Item]] | None = None
        self._fault: Exception | None = None
        self._lock = asyncio.Lock()

    async def get(self) -> Item | None:
        """The next item; ``None`` at the end. Raises what the iterator raises, behind the items that it gave before,
        to everyone who asks."""
        if self._ready:
            return self._ready.popleft()
        async with self._lock:
            if not self._ready:
                self._coming = self._coming or self._draw()
                found = await asyncio.shield(self._coming)
                if not found and self._fault is not None:
                    raise self._fault
                if not found:
                    return None
                self._ready.extend(found)
                self._coming = self._draw()
            return self._ready.popleft()

    async def any(self) -> bool:
        """Whether an item is left."""
        found = await self.get()
        if found is None:
            return False
        self._ready.appendleft(found)
        return True

    async def aclose(self) -> None:
        """Waits until the thread has drawn what it is drawing, and closes the iterator."""
        if self._coming is not None:
            await asyncio.wait([self._coming])
        self._items.close()

    def _draw(self) -> asyncio.Task[list[Item]]:
        return asyncio.create_task(asyncio.to_thread(self._take))

    def _take(self) -> list[Item]:
        found: list[Item] = []
        try:
            for item in islice(self._items, self._batch):
                found.append(item)
        except Exception as fault:
            self._fault = fault
        return found
