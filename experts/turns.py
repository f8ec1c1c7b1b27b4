"""Places for calls: how many an expert or tool takes at once, and who need not wait for one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from experts.clients.openai_backend import OpenAIExpertBackend
from experts.clients.tally import Tally
from experts.outcome import ExpertFailure, Outcome, Usage
from experts.per_loop import PerLoop


class Turns:
    """`places` calls at once for each event loop; the rest queue, and the tally counts both.

    client: the servers that the calls go to; None for a program in this process.
    """

    def __init__(self, places: int, tally: Tally, client: OpenAIExpertBackend | None = None) -> None:
        self._places = PerLoop(lambda: asyncio.Semaphore(places))
        self._tally = tally
        self._client = client

    @asynccontextmanager
    async def take(self, *, needs_server: bool = True) -> AsyncIterator[None]:
        """A place while the block runs. Raises ExpertFailure(UNAVAILABLE) at once where it would have to wait for one
        while no server takes requests."""
        places = self._places.get()
        with self._tally.one("queued"):
            # Places may be held by calls that wait for servers which are known to be dead by now.
            if places.locked() and needs_server and self._client is not None and self._client.all_rest():
                self._tally.ended(Outcome.UNAVAILABLE, 0.0, Usage())
                raise ExpertFailure(Outcome.UNAVAILABLE, "no server takes requests now", attempts=0)
            await places.acquire()
        try:
            with self._tally.one("in_flight"):
                yield
        finally:
            places.release()
