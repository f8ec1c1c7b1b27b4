"""The wording of a question, stripped of what does not change it: case, punctuation, spaces, width of characters.

The one idea: equal normal forms are the same text; texts that share most of their word pairs are nearly the same, and
a 64-bit sketch of the pairs (simhash) finds those among all texts at once.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

_MAX_CHARS = 4000
_WORDS = re.compile(r"[^\W_]+")
_CJK = re.compile(r"([\u3400-\u9fff])")


def normal_words(question: str, choices: Sequence[str] | None = None) -> list[str]:
    """The words of a question and its options. Chinese, which has no blanks, counts by characters."""
    text = "\n".join([question, *(choices or ())])[:_MAX_CHARS]
    text = unicodedata.normalize("NFKC", text).casefold()
    return _WORDS.findall(_CJK.sub(r" \1 ", text))


def sketch(words: Sequence[str]) -> np.uint64:
    """Simhash over words and word pairs: few bits differ between texts that share most of them."""
    features = set(words) | pairs(words)
    if not features:
        return np.uint64(0)
    bits = np.unpackbits(np.frombuffer(b"".join(map(_hash, features)), np.uint8)).reshape(-1, 64)
    return np.packbits(2 * bits.sum(axis=0, dtype=np.int64) > len(features)).view(np.uint64)[0]


def pairs(words: Sequence[str]) -> set[str]:
    """Neighbouring words."""
    return {f"{a} {b}" for a, b in pairwise(words)}


def shared(one: set[str], other: set[str]) -> float:
    """Share of the pairs that both have, of those that either has."""
    return len(one & other) / len(one | other) if one and other else 0.0


@lru_cache(maxsize=65536)
def _hash(feature: str) -> bytes:
    return hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
