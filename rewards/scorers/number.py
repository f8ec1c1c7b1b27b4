"""Numbers with a relative tolerance: the sign counts, and a percentage is never silently equated with a plain
number.
"""

from __future__ import annotations

from decimal import Decimal

from rewards.score import Score, judged, wrong
from rewards.scorers.numbers import Number, close, parse_number, read_number

EXACT = Decimal("1e-9")
"""For equal values written differently, such as 1/3 and 0.333333333333."""


def number(gold: str, answer: str, tolerance: Decimal = EXACT) -> Score:
    """Right when |answer - gold| <= tolerance x |gold|. Raises ValueError when the gold answer is no number.

    A unit may be left out ("5" for "5 cm"); two different units, or a percent sign on one side only, are
    wrong.
    """
    expected = parse_number(gold)
    if expected is None:
        raise ValueError(f"gold answer {gold!r:.100} is not a number")
    read = read_number(answer)
    if read is None:
        return wrong(None, f"expected {expected}, and the answer is not one number")
    return compare(expected, read, tolerance)


def compare(expected: Number, read: Number, tolerance: Decimal) -> Score:
    """Compare two numbers that are already read."""
    if expected.percent != read.percent:
        return wrong(str(read), f"expected {expected}, read {read}: only one of them is a percentage")
    if expected.unit and read.unit and expected.unit != read.unit:
        return wrong(str(read), f"expected {expected}, read {read}: the units differ")
    limit = "exactly" if tolerance == EXACT else f"within {100 * tolerance:f}".rstrip("0").rstrip(".") + " %"
    is_right = close(read.value, expected.value, tolerance)
    return judged(is_right, str(read), f"expected {expected}, read {read}: {'' if is_right else 'not '}equal {limit}")


def integer(gold: str, answer: str) -> Score:
    """A count or a year: the same whole number, however written ("3", "{3}", "three", "三").

    Raises ValueError when the gold answer is no whole number.
    """
    expected = parse_number(gold)
    if expected is None or expected.value != expected.value.to_integral_value():
        raise ValueError(f"gold answer {gold!r:.100} is not a whole number")
    return number(gold, answer)
