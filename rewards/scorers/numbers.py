"""Reading a number as people and models write it: `1,234`, `−3`, `\\frac{1}{2}`, `12 million`.

The one idea: a number is read whole or not at all. What is left over (a percent sign, a unit) is kept beside
the value, so that a rule can refuse to equate 50 with 50 %, and text with two numbers in it is no number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from rewards.scorers.text import fold, plain, strip_lead, unwrap

MAX_NUMBER_CHARS = 80

_SCALES = {
    "thousand": 3, "k": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12,
    "千": 3, "万": 4, "百万": 6, "千万": 7, "亿": 8,
}  # fmt: skip
_UNITS = {
    "degree": "°", "deg": "°", "centimeter": "cm", "centimetre": "cm", "millimeter": "mm", "millimetre": "mm",
    "meter": "m", "metre": "m", "kilometer": "km", "kilometre": "km", "inche": "in", "inch": "in",
    "foot": "ft", "feet": "ft", "度": "°", "厘米": "cm", "米": "m",
}  # fmt: skip
_ENGLISH = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_WORDS = {word: value for value, word in enumerate(_ENGLISH)}
_HAN_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_HAN_NUMBER = re.compile("([一二三四五六七八九])?(十)([一二三四五六七八九])?|([零〇一二两三四五六七八九])")

_LATEX = (
    ("\\%", "%"), ("\\$", "$"), ("{,}", ","), ("\\,", ""), ("\\!", ""), ("\\;", " "), ("\\ ", " "),
    ("^{\\circ}", "°"), ("^\\circ", "°"), ("\\degree", "°"), ("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"),
)  # fmt: skip
_DEC = r"(?:\d+(?:\.\d*)?|\.\d+)"
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(
    rf"""(?P<sign>[+-])?\s*(?:US)?[$£€¥]?\s*(?P<inner_sign>-)?
    (?:
      \\frac\s*(?:\{{\s*(?P<top>-?{_DEC})\s*\}}\s*\{{\s*(?P<bottom>{_DEC})\s*\}}|(?P<top1>\d)\s*(?P<bottom1>\d))
    | (?:(?P<whole>\d+)[ ])?(?P<num>{_DEC})\s*/\s*(?P<den>{_DEC})
    | (?P<grouped>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d{{1,3}}(?:[ ]\d{{3}})+(?:\.\d+)?)
    | (?P<plain>{_DEC})
      (?:e(?P<exp>[+-]?\d{{1,3}})|\s*(?:\\times|×|\\cdot|\*)\s*10\s*\^\s*\{{?(?P<ten>[+-]?\d{{1,3}})\}}?)?
    )
    (?:\s*(?P<scale>thousand|million|billion|trillion|mn|bn|k|百万|千万|千|万|亿)(?![a-z]))?
    \s*(?P<percent>%|percent\b|per\ cent\b)?
    \s*(?P<unit>(?!(?:or|and|to|plus|minus|x|y|z|n)\b)[^\W\d_][^\d=\\]{{0,23}}(?:\^?[23])?|°[cf]?)?\.?""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Number:
    """A number as written: its value (scale words multiplied in), whether a percentage, its unit or ""."""

    value: Decimal
    percent: bool = False
    unit: str = ""

    def __str__(self) -> str:
        text = format(self.value.normalize(), "f") if abs(self.value.adjusted()) < 16 else str(self.value)
        return text + ("%" if self.percent else "") + (f" {self.unit}" if self.unit else "")


@lru_cache(maxsize=2048)
def parse_number(text: str) -> Number | None:
    """The number that the whole text is, or None. nan and infinity are no numbers."""
    if len(text) > MAX_NUMBER_CHARS:
        return None
    folded = unwrap(fold(text))
    if "\\" in folded or "{" in folded:
        for latex, plainer in _LATEX:
            folded = folded.replace(latex, plainer)
    match = _NUMBER.fullmatch(folded.strip().rstrip("。")) if _DIGIT.search(folded) else None
    if match is None:
        return _from_word(plain(folded))
    try:
        value = _value(match)
    except ArithmeticError:
        return None
    if value is None or abs(value.adjusted()) > 300:
        return None
    return Number(value, match["percent"] is not None, _unit(match["unit"]))


def read_number(answer: str) -> Number | None:
    """`parse_number` for the policy's side, where a lead-in ("the answer is") may stand before the number."""
    if len(answer) > 2 * MAX_NUMBER_CHARS:
        return None
    return parse_number(strip_lead(unwrap(fold(answer))))


def close(value: Decimal, gold: Decimal, tolerance: Decimal) -> bool:
    """|value - gold| <= tolerance x |gold|: relative to the gold answer, so only 0 is close to 0."""
    try:
        return abs(value - gold) <= tolerance * abs(gold)
    except ArithmeticError:
        return False


def _value(match: re.Match[str]) -> Decimal | None:
    if (top := match["top"] or match["top1"]) is not None:
        value = _quotient(top, match["bottom"] or match["bottom1"])
    elif match["num"] is not None:
        value = _quotient(match["num"], match["den"])
        if value is not None and match["whole"] is not None:
            value += Decimal(match["whole"])
    elif match["grouped"] is not None:
        value = Decimal(match["grouped"].replace(",", "").replace(" ", ""))
    else:
        value = Decimal(match["plain"]).scaleb(int(match["exp"] or match["ten"] or 0))
    if value is None:
        return None
    if match["scale"]:
        value = value.scaleb(_SCALES[match["scale"].lower()])
    return -value if (match["sign"] == "-") != (match["inner_sign"] is not None) else value


def _quotient(top: str, bottom: str) -> Decimal | None:
    divisor = Decimal(bottom)
    return Decimal(top) / divisor if divisor else None


def _unit(unit: str | None) -> str:
    name = (unit or "").strip(" .").casefold()
    singular = name.removesuffix("s") if len(name) > 2 else name
    return _UNITS.get(name, _UNITS.get(singular, singular))


def _from_word(word: str) -> Number | None:
    if word in _WORDS:
        return Number(Decimal(_WORDS[word]))
    match = _HAN_NUMBER.fullmatch(word)
    if match is None:
        return None
    tens, _, ones, single = match.groups()
    if single:
        return Number(Decimal(_HAN_DIGITS[single]))
    return Number(Decimal(10 * (_HAN_DIGITS[tens] if tens else 1) + (_HAN_DIGITS[ones] if ones else 0)))
