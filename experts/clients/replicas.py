"""Which server gets the next request.

The one idea: a replica that keeps failing rests; while all rest, calls fail at once instead of each waiting
for a dead server. After a pause one call is let through as a probe, and its fate decides.

"Keeps failing" is three times in a row, and at least half of its last twenty results: under load, three of
many unrelated faults come in a row sooner or later, and that alone must not take a good server away.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from experts.outcome import Outcome
from registry.schema import Replica

FAILURES_TO_OPEN = 3  # in a row
SHARE_TO_OPEN = 0.5  # of the last WINDOW results
WINDOW = 20
REST_S = 5.0  # doubled with every failed probe
LONGEST_REST_S = 60.0


@dataclass
class Server:
    """One replica's state. A `Server` is changed under the lock of its `Replicas` only."""

    url: str
    weight: float
    in_flight: int = 0
    in_a_row: int = 0  # failures
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))
    rest_s: float = REST_S
    resting_until: float | None = None
    probing: bool = False
    last_used: int = 0
    requests: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def load(self) -> tuple[float, int]:
        """Less is better: requests in flight for the weight, then the longest unused."""
        return (self.in_flight + 1) / self.weight, self.last_used

    def succeed(self) -> None:
        if self.resting_until is not None:
            self.recent.clear()
        self.recent.append(True)
        self.in_a_row, self.resting_until, self.rest_s = 0, None, REST_S

    def fail(self, now: float, probe: bool) -> None:
        self.recent.append(False)
        self.in_a_row += 1
        if probe:
            self.rest_s = min(2 * self.rest_s, LONGEST_REST_S)
        elif self.resting_until is not None:
            return  # sent before it came to rest: nothing new
        failed = self.recent.count(False) >= SHARE_TO_OPEN * len(self.recent)
        if probe or (self.in_a_row >= FAILURES_TO_OPEN and failed):
            self.resting_until = now + self.rest_s


class Lease:
    """The right to send one request to `url`. Whoever holds it reports how the server did."""

    def __init__(self, server: Server) -> None:
        self.url = server.url
        self.probe = server.resting_until is not None
        self.alive: bool | None = None  # None: nothing learnt, for example a cancelled call
        self.outcome: Outcome | None = None


class Replicas:
    """The servers of one expert; thread-safe."""

    def __init__(self, replicas: Collection[Replica], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = [Server(replica.url, replica.weight) for replica in replicas]
        self._clock = clock
        self._lock = threading.Lock()
        self._uses = 0

    @contextmanager
    def lease(self, avoid: Collection[str] = (), *, other: bool = False) -> Iterator[Lease | None]:
        """The least loaded server for its weight, one not in `avoid` if there is one (with `other`: only such
        a one); None while all rest."""
        with self._lock:
            server = self._pick(avoid, other)
            if server is not None:
                lease = Lease(server)
                self._uses += 1
                server.in_flight += 1
                server.requests += 1
                server.last_used = self._uses
                server.probing = server.probing or lease.probe
        if server is None:
            yield None
            return
        try:
            yield lease
        finally:
            with self._lock:
                self._give_back(server, lease)

    def all_rest(self) -> bool:
        """Whether no server would take a request now."""
        with self._lock:
            return self._pick((), False) is None

    def status(self) -> list[dict[str, Any]]:
        """For each server url, weight, state (closed, open, half-open), rests_s (seconds until it may be probed),
        in_flight, requests, and failures by outcome."""
        with self._lock:
            now = self._clock()
            return [
                {
                    "url": server.url,
                    "weight": server.weight,
                    "state": _state(server, now),
                    "rests_s": max(0.0, (server.resting_until or now) - now),
                    "in_flight": server.in_flight,
                    "requests": server.requests,
                    "failures": dict(server.failures),
                }
                for server in self._servers
            ]

    def _pick(self, avoid: Collection[str], other: bool) -> Server | None:
        now = self._clock()
        ready = [s for s in self._servers if s.resting_until is None]
        probes = [s for s in self._servers if s.resting_until is not None and s.resting_until <= now]
        # A server due for its probe goes first, or it would never come back beside a healthy one.
        for group in ([s for s in probes if not s.probing], ready):
            fresh = [s for s in group if s.url not in avoid]
            if fresh:
                return min(fresh, key=Server.load)
        return None if other else min(ready, key=Server.load, default=None)

    def _give_back(self, server: Server, lease: Lease) -> None:
        server.in_flight -= 1
        if lease.probe:
            server.probing = False
        if lease.outcome is not None and lease.outcome is not Outcome.OK:
            server.failures[lease.outcome.value] += 1
        if lease.alive:
            server.succeed()
        elif lease.alive is False:
            server.fail(self._clock(), lease.probe)


def _state(server: Server, now: float) -> str:
    if server.resting_until is None:
        return "closed"
    return "half-open" if server.probing or server.resting_until <= now else "open"
