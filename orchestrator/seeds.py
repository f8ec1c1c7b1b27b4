"""Seeds that depend on names, not on order.

The one idea: an episode's seed is a hash of (run seed, row, sample) and a turn's seed one of (episode seed,
turn), so that the same run gives the same draws whatever runs beside it, and a resumed run the same as an
unbroken one.
"""

from __future__ import annotations

import hashlib

_BITS = 48  # exact in JSON readers that know only doubles, legal for every engine


def derive_seed(*parts: int | str) -> int:
    """A number of 48 bits from the parts."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[: _BITS // 8], "big")


def episode_seed(run_seed: int, row_id: str, sample: int) -> int:
    """The seed of one episode."""
    return derive_seed("episode", run_seed, row_id, sample)


def turn_seed(seed: int, turn: int) -> int:
    """The seed of turn `turn` (from 0) of an episode with seed `seed`."""
    return derive_seed("turn", seed, turn)
