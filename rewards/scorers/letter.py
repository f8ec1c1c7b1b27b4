"""One letter of the alphabet as the answer, such as the letter that is circled in a word."""

from __future__ import annotations

import re

from rewards.score import Score, judged, wrong
from rewards.scorers.text import fold, plain, plain_answer

_BRACED = re.compile(r"\{\s*([^\W\d_])\s*\}")
_NAMED = re.compile(r"\b(?:letter|character)\s+(?:is\s+)?[\"'(]?([^\W\d_])[\"')]?[.\s]*$", re.IGNORECASE)


def read_letter(answer: str) -> str | None:
    """The letter, in lower case: "n", "{n}", "the letter n", "The circled letter is N."; None when there is
    none.
    """
    text = plain_answer(answer)
    if len(text) == 1 and text.isalpha():
        return text
    folded = fold(answer)
    braced = {letter.casefold() for letter in _BRACED.findall(folded)}
    if len(braced) == 1:
        return braced.pop()
    named = _NAMED.search(folded) if not braced else None
    return named[1].casefold() if named else None


def letter(gold: str, answer: str) -> Score:
    """Right when the letters agree, upper or lower case. Raises ValueError when the gold answer is no
    letter.
    """
    expected = plain(gold)
    if len(expected) != 1:
        raise ValueError(f"gold answer {gold!r:.100} is not one letter")
    read = read_letter(answer)
    if read is None:
        return wrong(None, f"expected {expected}, and the answer is not one letter")
    return judged(read == expected, read, f"expected {expected}, read {read}")
