"""VLMsAreBlind: each task group has its own answer format (yes/no, {n}, a letter, rows and columns)."""

from __future__ import annotations

import re

from rewards.score import Score, judged, wrong
from rewards.scorers.grid import grid, read_grid
from rewards.scorers.letter import letter
from rewards.scorers.numbers import parse_number, read_number
from rewards.scorers.text import fold, plain
from rewards.scorers.yes_no import gold_yes_no, yes_no

_BRACED = re.compile(r"\{\s*(\d{1,6})\s*\}")
_INTEGER = re.compile(r"(?<![\d.,-])\d{1,6}(?![\d]|[.,]\d)")
# Words in a task's name, in the order in which they decide: "touching circles" is yes/no, "counting circles"
# a count.
_FORMATS = (
    ("letter", "letter"), ("grid", "grid"), ("row", "grid"), ("touching", "yes_no"), ("overlap", "yes_no"),
    ("line", "count"), ("intersection", "count"), ("subway", "count"), ("olympic", "count"),
    ("square", "count"), ("count", "count"),
)  # fmt: skip


def vlmsareblind(gold: str, answer: str, group: str | None = None) -> Score:
    """Score by the format of the task group (named freely: "Touching Circles", "olympic counting - circles").

    Without a known group the gold answer's own form decides. Raises ValueError when the two do not fit.
    """
    kind = format_of(gold, group)
    if kind == "yes_no":
        return yes_no(gold, answer)
    if kind == "grid":
        return grid(gold, answer)
    if kind == "letter":
        return letter(gold, answer)
    return count(gold, answer)


def format_of(gold: str, group: str | None) -> str:
    """yes_no | grid | letter | count. "Do the lines touch?" and "How often?" share a group: a yes/no gold
    decides.
    """
    if gold_yes_no(gold) is not None:
        return "yes_no"
    name = plain(group or "").replace("_", " ")
    for word, kind in _FORMATS:
        if word in name:
            return kind
    if read_grid(gold) is not None:
        return "grid"
    text = plain(gold)
    if len(text) == 1 and text.isalpha():
        return "letter"
    return "count"


def count(gold: str, answer: str) -> Score:
    """A count: in braces if the answer has braces, else the first whole number, as the published rule reads
    it.
    """
    expected = parse_number(gold)
    if expected is None or expected.value != expected.value.to_integral_value():
        raise ValueError(f"gold answer {gold!r:.100} is not a whole number")
    number = read_number(answer)
    if number is not None:
        same = number.value == expected.value and not number.percent
        return judged(same, str(number), f"expected {expected}, read {number}")
    text = fold(answer)
    found = (_BRACED.findall(text) or _INTEGER.findall(text))[:1]
    if not found:
        return wrong(None, f"expected {expected}, and the answer holds no whole number")
    return judged(int(found[0]) == expected.value, found[0], f"expected {expected}, read {found[0]}")
