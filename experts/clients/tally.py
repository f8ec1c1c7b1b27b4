"""What one expert's calls have come to since the start; thread-safe."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from experts.outcome import Usage

_LATENCIES = 1024  # the last ones are kept


class Tally:
    """Counts calls by outcome, what waits and what runs, seconds, tokens and money."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: Counter[str] = Counter(queued=0, in_flight=0)
        self._outcomes: Counter[str] = Counter()
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)
        self._usage = Usage()

    @contextmanager
    def one(self, what: str) -> Iterator[None]:
        """One more call is `queued` or `in_flight` while the block runs."""
        with self._lock:
            self._now[what] += 1
        try:
            yield
        finally:
            with self._lock:
                self._now[what] -= 1

    def ended(self, outcome: str, seconds: float, usage: Usage) -> None:
        """A call came to its end `seconds` after it was sent."""
        with self._lock:
            self._outcomes[outcome] += 1
            self._usage += usage
            if outcome == "ok":
                self._latencies.append(seconds)

    def status(self) -> dict[str, Any]:
        """Plain data: queued, in_flight, calls, outcomes (by name; `given_up` where the caller's time was up),
        latency_s (p50 and p95 of the last good calls, None without any), tokens (prompt, completion), cost."""
        with self._lock:
            latencies = sorted(self._latencies)
            return {
                **self._now,
                "calls": self._outcomes.total(),
                "outcomes": dict(self._outcomes),
                "latency_s": {"p50": _percentile(latencies, 0.50), "p95": _percentile(latencies, 0.95)},
                "tokens": {"prompt": self._usage.prompt_tokens, "completion": self._usage.completion_tokens},
                "cost": self._usage.cost,
            }


def _percentile(ordered: list[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
