"""SLAKE: exact match after its harness's normalisation, in English and Chinese."""

from __future__ import annotations

import re

from rewards.score import Score, judged
from rewards.scorers.exact import exact
from rewards.scorers.text import fold, strip_lead, unwrap

_PARENTHESES = re.compile(r"\([^()]*\)")
_PUNCTUATION = re.compile(r"[^\w\s]|_")
_SPACES = re.compile(r"\s+")


def slake(gold: str, answer: str) -> Score:
    """Right by `exact`, or when both are the same words: "(...)" dropped, punctuation as spaces, x-ray =
    xray.
    """
    verdict = exact(gold, answer)
    if verdict.value:
        return verdict
    expected, read = _words(gold), _words(answer)
    return judged(bool(expected) and read == expected, read, f"expected {expected!r}, read {read!r:.100}")


def _words(text: str) -> str:
    text = _PARENTHESES.sub(" ", unwrap(strip_lead(fold(text))).casefold())
    words = _SPACES.sub(" ", _PUNCTUATION.sub(" ", text)).strip()
    return re.sub(r"\bx ?ray\b", "xray", words)
