"""ChartQA's relaxed accuracy: numbers within 5 % of the gold answer, everything else the same text.

Two readings of one rule. `official` is what the public harnesses compute, letter for letter: a trailing %
divides by 100, no comma is understood, and a gold answer of 0 is compared as text. `relaxed` accepts all that
`official` accepts and, under the same 5 %, numbers and texts that the official rule misses for their spelling
alone ("1,234", "1995.").
"""

from __future__ import annotations

from decimal import Decimal

from rewards.score import Score, judged, right
from rewards.scorers.exact import exact
from rewards.scorers.number import compare
from rewards.scorers.numbers import parse_number, read_number

TOLERANCE = Decimal("0.05")


def official(gold: str, answer: str) -> Score:
    """The harnesses' rule. Note that it puts years within 5 %: 2008 is right for 2010."""
    expected, read = _to_float(gold), _to_float(answer)
    if read is not None and expected:
        is_right = abs(read - expected) / abs(expected) <= float(TOLERANCE)
        return judged(is_right, answer.strip(), f"expected {expected:g}, read {read:g}: 5 % relative")
    is_right = answer.lower() == gold.lower()
    return judged(is_right, answer.strip(), f"expected {gold!r:.100}, compared as text")


def relaxed(gold: str, answer: str) -> Score:
    """Right when the official rule says so, or when only the spelling of the answer kept it from saying
    so.
    """
    verdict = official(gold, answer)
    if verdict.value:
        return right(verdict.answer or answer.strip(), verdict.explanation)
    expected = parse_number(gold)
    read = read_number(answer) if expected else None
    if expected is None or read is None:
        return exact(gold, answer)
    return compare(expected, read, TOLERANCE)


def _to_float(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None
