"""OCRBench: right when one of the gold texts stands in the answer, as its published rule has it."""

from __future__ import annotations

from rewards.score import Score, judged
from rewards.scorers.official_text import is_formula
from rewards.scorers.text import fold


def ocrbench(gold: str, answer: str, group: str | None = None) -> Score:
    """Containment after lower-casing; for handwritten formulas (HME100k) case counts and spaces do not.

    Raises ValueError for an empty gold answer, which would stand in every answer.
    """
    if not gold.strip():
        raise ValueError("the gold answer is empty")
    if is_formula(group):
        expected, read = gold.replace(" ", "").replace("\n", ""), answer.replace(" ", "").replace("\n", "")
    else:
        expected, read = fold(gold).lower(), fold(answer).lower()
    inside = expected in read
    return judged(inside, read, f"{gold!r:.100} {'stands' if inside else 'does not stand'} in the answer")
