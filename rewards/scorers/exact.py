"""The same text, number or yes/no, after look-alikes, quotes and edge punctuation are taken off. Never a
substring.
"""

from __future__ import annotations

import re

from rewards.score import Score, judged, right, wrong
from rewards.scorers.number import EXACT
from rewards.scorers.numbers import close, parse_number, read_number
from rewards.scorers.text import fold, plain, plain_answer
from rewards.scorers.yes_no import gold_yes_no, yes_no

_LEADING_ZERO = re.compile(r"0\d")


def exact(gold: str, answer: str) -> Score:
    """Right when both sides say the same: equal text, or the same number, or the same side of the yes/no
    table.
    """
    folded = fold(answer)
    if not folded:
        return wrong(None, f"expected {gold!r:.100}, and the answer is empty")
    if folded == fold(gold):
        return right(folded, "the same text")
    if gold_yes_no(gold) is not None:
        return yes_no(gold, answer)
    expected, read = plain(gold), plain_answer(answer)
    if expected and expected in (read, plain(answer)):
        return right(expected, f"expected {gold!r:.100}, read {expected!r}: the same text")
    same_number = _same_number(gold, answer)
    if same_number is not None:
        return judged(same_number, read, f"expected {gold!r:.100}, read {read!r:.100}, compared as numbers")
    return wrong(read or None, f"expected {gold!r:.100}, read {read!r:.100}: not the same")


def _same_number(gold: str, answer: str) -> bool | None:
    """Whether both are the same number with the same sign, percent mark and unit; None if one is no
    number.
    """
    if _LEADING_ZERO.match(gold):  # a code or a postcode, not a quantity
        return None
    expected = parse_number(gold)
    read = read_number(answer) if expected else None
    if expected is None or read is None:
        return None
    same_kind = expected.percent == read.percent and expected.unit == read.unit
    return same_kind and close(read.value, expected.value, EXACT)
