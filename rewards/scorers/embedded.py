"""The embedded world: each family of made images has one answer format."""

from __future__ import annotations

from decimal import Decimal

from rewards.score import Score, judged, wrong
from rewards.scorers.exact import exact
from rewards.scorers.grid import grid, read_grid
from rewards.scorers.number import integer, number
from rewards.scorers.numbers import parse_number
from rewards.scorers.text import plain, plain_answer
from rewards.scorers.yes_no import gold_yes_no, yes_no

# Values read off an axis, and lengths worked out from labels: relative tolerance of the family.
_TOLERANCES = {"bar_value": Decimal("0.02"), "right_triangle": Decimal("0.01")}
_COLOURS = {"grey": "gray", "violet": "purple", "magenta": "pink", "turquoise": "cyan"}


def embedded(gold: str, answer: str, group: str | None = None) -> Score:
    """Score by family: numbers with the family's tolerance, counts exactly, colours, yes/no, "rows,columns",
    labels.

    The gold answer's form decides in families that ask in two ways ("How often ...?" and "Do they ...?").
    Raises ValueError when family and gold answer do not fit.
    """
    if gold_yes_no(gold) is not None:
        return yes_no(gold, answer)
    family = plain(group or "")
    if family in _TOLERANCES:
        return number(gold, answer, _TOLERANCES[family])
    if family == "shape_colour":
        return colour(gold, answer)
    if family == "grid_size" or read_grid(gold) is not None:
        return grid(gold, answer)
    expected = parse_number(gold)
    if expected is not None and expected.value == expected.value.to_integral_value():
        return integer(gold, answer)
    return exact(gold, answer)


def colour(gold: str, answer: str) -> Score:
    """A colour's name, alone or before the word "colour"; names that mean the same colour are one."""
    expected, read = _colour_name(plain(gold)), _colour_name(plain_answer(answer))
    if not read:
        return wrong(None, f"expected {expected}, and the answer is empty")
    return judged(read == expected, read, f"expected {expected}, read {read}")


def _colour_name(text: str) -> str:
    for word in ("colour", "color"):
        text = text.removesuffix(word).strip()
    return _COLOURS.get(text, text)
