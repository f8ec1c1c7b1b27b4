"""MathVision as its own evaluation reads it: an answer is dug out of the reply, stripped of LaTeX, and compared
with the gold letter and with the gold option's text, as text or by value to two decimals.

The one difference: values come from `evaluate`, a small bounded grammar, where the original hands the text to a
LaTeX parser and to `eval`. What only those can compute is compared as text here. A root or pi has no value to the
original either: its `eval` knows neither name, so "2.449" is wrong for a gold \\sqrt{6}.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_uppercase

from rewards.score import Score, judged
from rewards.scorers.choice import gold_index
from rewards.scorers.expression import evaluate

_FLAGS = tuple(
    spelling + rest
    for rest in (" final answer is", " answer is", " correct answer is", " answer should be")
    for spelling in ("the", "The")
)
_DROPPED = (
    (" ", ""), ("\\,", ""), ("∞", "\\infty"), ("+\\infty", "\\infty"), ("\\\\", "\\"), ("\n", ""), ("\\text", ""),
    ("\\mbox", ""), ("bmatrix", "pmatrix"), ("\\left", ""), ("\\right", ""), ("^{\\circ}", ""), ("^\\circ", ""),
    ("{m}^3", ""), ("m^3", ""), ("{units}", ""), ("units", ""), ("{km}", ""), ("km", ""),
    # the original's second pass
    ("\\!", ""), ("tfrac", "frac"), ("dfrac", "frac"), ("\\$", ""), ("$", ""), ("\\%", ""), ("{.", "{0."),
)  # fmt: skip
# What is left to drop from a text without a backslash; most answers are such.
_DROPPED_PLAIN = tuple((what, instead) for what, instead in _DROPPED if "\\" not in what + instead)
_ENDINGS = tuple(end for letter in "ABCDE" for end in (f" {letter}.", f" ({letter})."))
_STARTS = tuple(start for letter in "ABCDE" for start in (f"{letter}\n", f"({letter})\n", f"({letter}) {letter}\n"))
_LETTERS = tuple((wrap.format(letter), letter) for wrap in ("({})", "{{{}}}") for letter in "abcde")
_BARE_ROOT = re.compile(r"\\sqrt([^{])")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
_RATIO = re.compile(r"\d+:\d+", re.ASCII)
_FRACTION = re.compile(r"-?\d+/-?\d+", re.ASCII)


def mathvision(gold: str, answer: str, choices: Sequence[str] | None = None) -> Score:
    """Right when the answer dug out equals the gold answer or, where there are options, the gold option's text.

    Raises ValueError when there are options and the gold answer is none of them.
    """
    golds = [gold]
    if choices:
        index = gold_index(gold, tuple(choices))
        golds = [ascii_uppercase[index], choices[index]]
    read = dig_out(answer)
    is_right = any(_equal(one, read) for one in golds)
    return judged(is_right, read, f"expected {' or '.join(map(repr, golds))}, the harness reads {read!r:.100}")


def dig_out(reply: str) -> str:
    """The answer in a reply, lower-cased and stripped of spaces, units and most LaTeX."""
    text = reply.strip()
    for letter in "ABCDE" if text.endswith(_ENDINGS) or text.startswith(_STARTS) else "":
        ends = text.endswith((f" {letter}.", f" ({letter})."))
        if ends or text.startswith((f"{letter}\n", f"({letter})\n", f"({letter}) {letter}\n")):
            text = letter
    last = text.rsplit("is ", 1)[-1].rstrip(".")
    if _is_number(last):
        text = last
    if "oxed{" not in text:
        for flag in _FLAGS if " answer " in text else ():
            if flag in text:
                text = text.rsplit(flag, 1)[-1].strip().split("\n", 1)[0].split(". ", 1)[0]
    elif text.count("oxed{") > 1:
        text = "\\boxed{" + text.rsplit("oxed{", 1)[-1]
    text = _strip(text.lower())
    for wrapped, letter in _LETTERS if "(" in text or "{" in text else ():
        text = text.replace(wrapped, letter)
    return text.rstrip(".").lstrip(":").strip()


def _strip(text: str) -> str:
    text = text.replace("{}", "")
    opening = text.find("oxed{")
    closing = text.rfind("}")
    if opening >= 0 and closing >= opening + 5:
        text = text[opening + 5 : closing]
    close, open_ = text.find("}"), text.find("{")
    if close >= 0 and (open_ < 0 or close < open_):
        text = text[:close]
    text = text.rsplit("=", 1)[-1].rsplit("\\approx", 1)[-1]
    for what, instead in _DROPPED if "\\" in text or "∞" in text else _DROPPED_PLAIN:
        text = text.replace(what, instead)
    if text.startswith("."):
        text = "0" + text
    text = _BARE_ROOT.sub(r"\\sqrt{\1}", text)
    if text == "0.5":
        return "\\frac{1}{2}"
    if _FRACTION.fullmatch(text):
        top, bottom = text.split("/")
        return f"\\frac{{{top}}}{{{bottom}}}"
    return text


def _equal(gold: str, read: str) -> bool:
    gold, read = gold.lower(), read.lower()
    if not gold.strip() or not read.strip():
        return False
    if gold.strip() == read.strip() or _tuple(gold) == _tuple(read):
        return True
    one = _known_value(gold)
    other = None if one is None else _value(read)
    return one is not None and other is not None and round(one, 2) == round(other, 2)


def _unwrapped(text: str) -> str:
    """What braces around all of a text hold: to LaTeX they are not there."""
    inner = text[1:-1]
    return inner if text == "{" + inner + "}" and not {"{", "}"} & set(inner) else text


def _value(text: str) -> float | None:
    if "sqrt" in text or "pi" in text or "√" in text or "π" in text:
        return None
    text = _unwrapped(text.strip())
    if _RATIO.fullmatch(text):
        return evaluate(text.replace(":", "/"))
    return evaluate(text.replace(",", "") if _GROUPED.fullmatch(text) else text)


_known_value = lru_cache(maxsize=4096)(_value)
"""For gold answers, which come again with every sample."""


def _tuple(text: str) -> str:
    """ "(a,b)" and "[a,b]" with each part's value, as far as all parts but infinity and the letter a have one."""
    parts = text[1:-1].split(",")
    if len(parts) < 2 or text[0] + text[-1] not in ("()", "[]"):
        return text
    values: list[str] = []
    for part in parts:
        value = None if "infty" in part or part in ("a", "-a") else _value(part)
        if value is None and not ("infty" in part or part in ("a", "-a")):
            return text
        values.append(part if value is None else str(round(value, 2)))
    return text[0] + ",".join(values) + text[-1]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
