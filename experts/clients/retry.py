"""The one retry policy: timeouts, lost connections, 429 and 5xx are tried again with jitter, nothing else is.

The client library's own retries are off: two policies on top of each other multiply, and hide what happened.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

RETRIED_STATUS = frozenset({408, 429})


@dataclass(frozen=True)
class RetryPolicy:
    """tries: in all. Before try n + 1 a random share (half to all) of first_s * 2 ** (n - 1) is waited, at
    most longest_s seconds; a server's Retry-After is kept up to the same bound."""

    tries: int = 3
    first_s: float = 0.25
    longest_s: float = 4.0

    def pause(self, attempt: int, retry_after_s: float | None = None) -> float:
        """Seconds to wait after the failed try number `attempt` (from 1)."""
        longest = min(self.longest_s, self.first_s * 2 ** (attempt - 1))
        return max(random.uniform(longest / 2, longest), min(retry_after_s or 0.0, self.longest_s))


def retried(status: int) -> bool:
    """Whether a reply with this HTTP status is worth another try."""
    return status in RETRIED_STATUS or status >= 500
