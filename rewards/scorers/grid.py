"""Rows and columns of a grid, in every form in which the published prompts ask for them."""

from __future__ import annotations

import re
from functools import lru_cache

from rewards.score import Score, judged, wrong
from rewards.scorers.text import fold, strip_lead

_N = r"[{(\[]?\s*(\d{1,3})\s*[})\]]?"
_PAIR = re.compile(rf"[({{\[]?\s*{_N}\s*(?:[,;x×*]|by|and)?\s*{_N}\s*[)}}\]]?", re.IGNORECASE)
_IS = r"\s*(?:is|are|[=:])?\s*"
# "rows={5} columns={6}", and, where that does not give both, "5 rows and 6 columns".
_FORMS = tuple(
    (re.compile(rows, re.IGNORECASE), re.compile(columns, re.IGNORECASE))
    for rows, columns in (
        (rf"(?:\brows?|行数?){_IS}{_N}", rf"(?:\b(?:columns?|cols?)|列数?){_IS}{_N}"),
        (rf"{_N}\s*(?:rows?\b|行)", rf"{_N}\s*(?:(?:columns?|cols?)\b|列)"),
    )
)


@lru_cache(maxsize=2048)
def read_grid(answer: str) -> str | None:
    """ "rows,columns", or None. Named numbers ("columns=6 rows=5") are taken by name, two bare ones in that
    order.
    """
    text = strip_lead(fold(answer)).rstrip(".。 ")
    for rows_form, columns_form in _FORMS:
        rows, columns = _named(rows_form, text), _named(columns_form, text)
        if rows is not None and columns is not None:
            return f"{rows},{columns}"
    pair = _PAIR.fullmatch(text)
    # Two numbers need something between them: "56" is one number.
    if pair and re.search(r"\d\D+\d", text):
        return f"{int(pair[1])},{int(pair[2])}"
    return None


def _named(pattern: re.Pattern[str], text: str) -> int | None:
    found = {int(match[1]) for match in pattern.finditer(text)}
    return found.pop() if len(found) == 1 else None


def grid(gold: str, answer: str) -> Score:
    """Right when rows and columns are both right. Raises ValueError when the gold answer is no such pair."""
    expected = read_grid(gold)
    if expected is None:
        raise ValueError(f"gold answer {gold!r:.100} is not rows,columns")
    read = read_grid(answer)
    if read is None:
        return wrong(None, f"expected {expected}, and the answer is not rows and columns")
    return judged(read == expected, read, f"expected {expected}, read {read}")
