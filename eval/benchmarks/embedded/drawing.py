"""What every family hands back, and which things belong to which split.

The one idea: what a picture says (names, side lengths, compositions) is decided before it is drawn, and a
checksum of it decides which split may use it. So what the test split shows is never shown in training,
whatever the seeds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeVar

SPLITS = ("train", "validation", "test", "test_unseen")

T = TypeVar("T")


@dataclass(frozen=True)
class Drawing:
    """A finished picture: PNG bytes, the answer that follows from it, the words that its question may use."""

    png: bytes
    answer: str
    words: Mapping[str, str]


@dataclass(frozen=True)
class Part:
    """The share of all possible contents that one split may use; both test splits use the same share."""

    split: str

    def owns(self, content: object) -> bool:
        """True when this split may use `content`: anything with a stable `repr` (text, numbers, tuples)."""
        bucket = zlib.crc32(repr(content).encode()) % 10
        owner = "validation" if bucket == 0 else "test" if bucket <= 3 else "train"
        return owner == self.split.removesuffix("_unseen")

    def pick(self, make: Callable[[], T | None], content: Callable[[T], object] | None = None) -> T:
        """Call `make` until it gives something (None = a poor draw) whose content this split owns."""
        for _ in range(10_000):
            made = make()
            if made is not None and (content is None or self.owns(content(made))):
                return made
        raise RuntimeError(f"10,000 draws for split {self.split!r} gave nothing that may be used")


Painter = Callable[[str, Random, Part], Drawing]
"""`(ask, rng, part) -> Drawing`: draws a picture for one kind of question of a family."""
