"""Overlap of words (of characters, for Chinese): the F1 used for open answers where a part of the answer
counts.
"""

from __future__ import annotations

import re
from collections import Counter

from rewards.score import Score
from rewards.scorers.text import plain, plain_answer

# One token is one Han character or one word of any other script.
_TOKEN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


def f1(gold: str, answer: str) -> Score:
    """Harmonic mean of precision and recall over tokens, a value in [0, 1]."""
    read = plain_answer(answer)
    expected, got = _TOKEN.findall(plain(gold)), _TOKEN.findall(read)
    shared = sum((Counter(expected) & Counter(got)).values())
    if not shared:
        return Score(0.0, read or None, f"expected {gold!r:.100}, read {read!r:.100}: nothing shared")
    value = 2 * shared / (len(expected) + len(got))
    return Score(value, read, f"{shared} shared of {len(expected)} expected and {len(got)} given tokens")
