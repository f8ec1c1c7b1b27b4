"""Which server gets the next request.

The one idea: a replica that fails several times in a row rests; while all rest, calls fail at once instead
of each waiting for a dead server. After a pause one call is let through as a probe, and its fate decides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from registry.schema import Replica

FAILURES_TO_OPEN = 3
REST_S = 5.0  # doubled with every failed probe
LONGEST_REST_S = 60.0


@dataclass
class Server:
    """One replica's state. A `Server` is changed under the lock of its `Replicas` only."""

    url: str
    weight: float
    in_flight: int = 0
    failures: int = 0  # in a row
    rest_s: float = REST_S
    resting_until: float | None = None
    probing: bool = False


class Lease:
    """The right to send one request to `url`. Whoever holds it reports how the server did."""

    def __init__(self, server: Server) -> None:
        self.url = server.url
        self.probe = server.resting_until is not None
        self.alive: bool | None = None  # None: nothing learnt, for example a cancelled call


class Replicas:
    """The servers of one expert; thread-safe."""

    def __init__(self, replicas: Collection[Replica], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = [Server(replica.url, replica.weight) for replica in replicas]
        self._clock = clock
        self._lock = threading.Lock()

    @contextmanager
    def lease(self, avoid: Collection[str] = ()) -> Iterator[Lease | None]:
        """The least loaded server for its weight, one not in `avoid` if there is one; None while all rest."""
        with self._lock:
            server = self._pick(avoid)
            if server is not None:
                lease = Lease(server)
                server.in_flight += 1
                server.probing = server.probing or lease.probe
        if server is None:
            yield None
            return
        try:
            yield lease
        finally:
            with self._lock:
                self._give_back(server, lease)

    def _pick(self, avoid: Collection[str]) -> Server | None:
        now = self._clock()
        ready = [s for s in self._servers if s.resting_until is None]
        probes = [s for s in self._servers if s.resting_until is not None and s.resting_until <= now]
        # A server due for its probe goes first, or it would never come back beside a healthy one.
        for group in ([s for s in probes if not s.probing], ready):
            fresh = [s for s in group if s.url not in avoid]
            if fresh:
                return min(fresh, key=lambda s: (s.in_flight + 1) / s.weight)
        return min(ready, key=lambda s: (s.in_flight + 1) / s.weight, default=None)

    def _give_back(self, server: Server, lease: Lease) -> None:
        server.in_flight -= 1
        if lease.probe:
            server.probing = False
        if lease.alive:
            server.failures, server.resting_until, server.rest_s = 0, None, REST_S
        elif lease.alive is False:
            server.failures += 1
            if lease.probe:
                server.rest_s = min(2 * server.rest_s, LONGEST_REST_S)
            if server.failures >= FAILURES_TO_OPEN:
                server.resting_until = self._clock() + server.rest_s
