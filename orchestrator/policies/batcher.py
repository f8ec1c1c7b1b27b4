"""Micro-batching: many waiting requests, one call.

The one idea: requests gather while the worker is busy, and for a few milliseconds more as long as new ones
keep coming; then they go together. One thread does the work, so a model sees one batch at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Request = TypeVar("Request")
Reply = TypeVar("Reply")

_MAX_GATHERS = 8  # bound on waiting for stragglers, in units of gather_s


class MicroBatcher(Generic[Request, Reply]):
    """`submit` gives the reply to one request out of `run(batch)`.

    run: called in a worker thread with 1..max_batch requests, gives their replies in order. Where it raises,
    each request of the batch is run alone, so that one bad request fails alone. May be used from one event
    loop after another. A request that was cancelled while waiting is not run.
    """

    def __init__(
        self, run: Callable[[Sequence[Request]], Sequence[Reply]], *, max_batch: int, gather_s: float = 0.004
    ) -> None:
        self._run, self._max_batch, self._gather_s = run, max_batch, gather_s
        self._waiting: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._drainer: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batch")

    async def submit(self, request: Request) -> Reply:
        """Waits for the reply; raises what `run` raised for this request."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # an earlier loop took its waiters with it
            self._loop, self._waiting, self._drainer = loop, [], None
        future: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append((request, future))
        if self._drainer is None or self._drainer.done():
            self._drainer = loop.create_task(self._drain())
        return await future

    def close(self) -> None:
        """Ends the worker thread once its batch is done."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _drain(self) -> None:
        while self._waiting:
            await self._gather()
            batch = [(request, future) for request, future in self._waiting if not future.done()]
            batch, self._waiting = batch[: self._max_batch], batch[self._max_batch :]
            if batch:
                await self._serve(batch)

    async def _gather(self) -> None:
        for _ in range(_MAX_GATHERS):
            before = len(self._waiting)
            if before >= self._max_batch:
                return
            await asyncio.sleep(self._gather_s)
            if len(self._waiting) == before:
                return

    async def _serve(self, batch: list[tuple[Request, asyncio.Future[Reply]]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            replies = await loop.run_in_executor(self._thread, self._run, [request for request, _ in batch])
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    await self._serve([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, future), reply in zip(batch, replies, strict=True):
            if not future.done():
                future.set_result(reply)
