"""How often a shard may die before it is given up, and how long to wait before it starts again.

The one idea: a restart costs nothing that was finished, since the shard's journal goes on; but a shard that dies again
and again has a cause that a person must see.
"""

from __future__ import annotations

from collections import Counter

from eval.shard import Shard

MOST = 3
"""Restarts of one shard."""
LONGEST_WAIT = 30.0
"""Seconds."""


class Restarts:
    """Counts the deaths of shards."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._deaths: Counter[Shard] = Counter()

    def deaths(self, shard: Shard) -> int:
        return self._deaths[shard]

    def after_death(self, shard: Shard) -> float | None:
        """Seconds to wait before the shard starts again (2, 4, 8, ..., at most 30); None: it is given up."""
        self._deaths[shard] += 1
        if self._deaths[shard] > self.most:
            return None
        return min(2.0 ** self._deaths[shard], LONGEST_WAIT)
