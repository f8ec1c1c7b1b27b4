"""Answers of mathematics questions: by option where the row has options, else by value, else by text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from rewards.score import Score, judged, wrong
from rewards.scorers.choice import judge_option, read_option
from rewards.scorers.exact import exact
from rewards.scorers.expression import MAX_EXPRESSION_CHARS, evaluate
from rewards.scorers.numbers import parse_number
from rewards.scorers.text import fold, strip_lead, unwrap

_DECIMALS = 2
_NAMED = re.compile(r"[A-Za-z\\∠ ]{1,20}=\s*(?=\S)")


def mathematics(gold: str, answer: str, choices: Sequence[str] | None = None) -> Score:
    """Right when the option is right, or when the values agree to two decimals, as MathVision's rule has
    it.
    """
    if choices:
        options = tuple(choices)
        index = read_option(answer, options)
        if index is None and (value := value_of(answer)) is not None:
            hits = [i for i, option in enumerate(options) if _same(_known_value(option), value)]
            index = hits[0] if len(hits) == 1 else None
        return judge_option(gold, index, options)
    expected = _known_value(gold)
    if expected is None:
        return exact(gold, answer)
    read = value_of(answer)
    if read is None:
        return wrong(None, f"expected {gold!r:.100}, and the answer has no value")
    return judged(_same(expected, read), f"{read:.6g}", f"expected {expected:.6g}, read {read:.6g}: two decimals")


def value_of(text: str) -> float | None:
    """The value of an answer such as "x = 3\\sqrt{2}" or "40°", or None. A percentage is not a plain
    number.
    """
    if len(text) > 2 * MAX_EXPRESSION_CHARS:
        return None
    folded = unwrap(strip_lead(unwrap(fold(text)))).rstrip(".。")
    if named := _NAMED.match(folded):
        folded = folded[named.end() :]
    number = parse_number(folded)
    if number is not None:
        return None if number.percent else float(number.value)
    return evaluate(folded)


_known_value = lru_cache(maxsize=4096)(value_of)
"""For gold answers and options, which come again with every sample."""


def _same(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and round(one, _DECIMALS) == round(other, _DECIMALS)
