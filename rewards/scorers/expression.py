"""Values of small mathematical expressions such as `3\\sqrt{2}`, `\\frac{3\\pi}{4}` or `2(1+\\sqrt{5})`.

The one idea: a hand-written reader of a tiny grammar, bounded in length and depth, instead of a general LaTeX
parser that can be made to run for ever.

    sum     = product (("+" | "-") product)*
    product = power (("*" | "/" | nothing) power)*
    power   = atom ("^" small whole number)?
    atom    = number | pi | "(" sum ")" | "\\sqrt" group | "\\frac" group group
"""

from __future__ import annotations

import math
import re

MAX_EXPRESSION_CHARS = 120
_MAX_DEPTH = 8
_MAX_POWER = 8
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|(\\?pi\b|π|\\frac|\\sqrt|√|[()+\-*/^]))")
_SPELLINGS = (
    ("\\left", ""), ("\\right", ""), ("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\cdot", "*"),
    ("\\times", "*"), ("×", "*"), ("{", "("), ("}", ")"), ("[", "("), ("]", ")"), ("$", ""),
)  # fmt: skip


def evaluate(text: str) -> float | None:
    """The finite value of the whole expression, or None when it is none of this grammar's."""
    if len(text) > MAX_EXPRESSION_CHARS:
        return None
    for spelling, plainer in _SPELLINGS:
        text = text.replace(spelling, plainer)
    tokens: list[str] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        tokens.append(match[1] or match[2])
        position = match.end()
    reader = _Reader(tokens)
    try:
        value = reader.sum(0)
    except (_Unreadable, ArithmeticError, ValueError):
        return None
    return value if reader.at_end() and math.isfinite(value) else None


class _Unreadable(Exception):
    """The tokens do not follow the grammar, or nest too deeply."""


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0

    def at_end(self) -> bool:
        return self._next == len(self._tokens)

    def _peek(self) -> str:
        return "" if self.at_end() else self._tokens[self._next]

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def sum(self, depth: int) -> float:
        if depth > _MAX_DEPTH:
            raise _Unreadable
        sign = -1.0 if self._peek() == "-" else 1.0
        if self._peek() in ("-", "+"):
            self._take()
        value = sign * self._product(depth)
        while self._peek() in ("+", "-"):
            sign = -1.0 if self._take() == "-" else 1.0
            value += sign * self._product(depth)
        return value

    def _product(self, depth: int) -> float:
        value = self._power(depth)
        while (token := self._peek()) and token not in ("+", "-", ")", "^"):
            if token == "/":
                self._take()
                value /= self._power(depth)
                continue
            if token == "*":
                self._take()
            elif token[0].isdigit() or token[0] == ".":  # "2 3" is two numbers, "2(3)" a product
                raise _Unreadable
            value *= self._power(depth)
        return value

    def _power(self, depth: int) -> float:
        value = self._atom(depth)
        if self._peek() == "^":
            self._take()
            exponent = self._atom(depth)
            if exponent != int(exponent) or not 0 <= exponent <= _MAX_POWER:
                raise _Unreadable
            value = math.pow(value, exponent)
        return value

    def _atom(self, depth: int) -> float:
        token = self._take()
        if token == "(":
            value = self.sum(depth + 1)
            if self._take() != ")":
                raise _Unreadable
            return value
        if token in ("\\sqrt", "√"):
            return math.sqrt(self._group(depth))
        if token == "\\frac":
            return self._group(depth) / self._group(depth)
        if token in ("\\pi", "pi", "π"):
            return math.pi
        if token and (token[0].isdigit() or token[0] == "."):
            return float(token)
        raise _Unreadable

    def _group(self, depth: int) -> float:
        """What a command applies to: a bracketed sum, or the single atom that follows (`\\sqrt2`, `√2`)."""
        return self._atom(depth + 1)
