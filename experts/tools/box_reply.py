"""Boxes out of a grounding model's reply.

The one idea: the reply is untrusted text in one of a few habits (a JSON list in a code fence, the same list bare,
inside an object or cut off in the middle, or plain `[x0, y0, x1, y1]`), and whatever it is, reading it ends in
boxes or in none; it never raises, and it takes time in proportion to the reply's length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from experts.tools.reply_text import printable

UNNAMED = "object"
_BOX_KEYS = ("bbox_2d", "bbox", "box")
_LABEL_KEYS = ("label", "name", "class", "category", "text")
_SCORE_KEYS = ("score", "confidence")
_LONGEST_LABEL = 60
_FENCE = re.compile(r"```[A-Za-z0-9]*\s(.*?)(?:```|\Z)", re.DOTALL)
_MOST_FENCES = 8
_FLAT_OBJECT = re.compile(r"\{[^{}]*\}")
_NUMBER = r"\s{0,8}([-+]?\d{1,12}(?:\.\d{1,12})?)\s{0,8}"
_PLAIN = re.compile(
    # [x0, y0, x1, y1], the same in round brackets, or (x0, y0), (x1, y1)
    rf"[\[(]{_NUMBER},{_NUMBER}(?:,|[\])]\s{{0,8}},?\s{{0,8}}[\[(]){_NUMBER},{_NUMBER}[\])]"
)
_MARKUP = re.compile(r"<[^<>]{0,60}>")


@dataclass(frozen=True)
class RawBox:
    """A box in the model's own coordinates. keyed: it stood under a key that says that it is a box."""

    label: str
    numbers: tuple[float, float, float, float]
    score: float | None = None
    keyed: bool = False


@dataclass(frozen=True)
class BoxReply:
    """What a reply holds. left_out: boxes beyond the limit. understood: there were boxes, or JSON without any."""

    boxes: tuple[RawBox, ...]
    left_out: int = 0
    understood: bool = True


def read_boxes(text: str, limit: int) -> BoxReply:
    """The first `limit` different boxes of a reply, in its order. Never raises."""
    fences = [match[1] for match in islice(_FENCE.finditer(text), _MOST_FENCES)]
    parsed = [value for candidate in (fences, [text]) if (value := _loaded(candidate))]
    for values in parsed:
        found = _first(chain.from_iterable(map(_in_value, values)), limit)
        if found.boxes:
            return found
    for source in (_in_the_midst, _in_flat_objects, _in_words):
        found = _first(source(text), limit)
        if found.boxes:
            return found
    return BoxReply((), understood=bool(parsed))


def box_numbers(value: Any) -> tuple[float, float, float, float] | None:
    """`value` as four numbers, maybe without meaning; None when it is anything else."""
    if not isinstance(value, list) or len(value) != 4:
        return None
    if not all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value):
        return None
    x0, y0, x1, y1 = (_float(item) for item in value)
    return x0, y0, x1, y1


def box_of(entry: dict[str, Any]) -> Any:
    """What stands under one of the keys that mean a box, or None."""
    return next((entry[key] for key in _BOX_KEYS if key in entry), None)


def label_of(entry: dict[str, Any]) -> str:
    """An entry's name for what is in the box, on one line and without markup."""
    named = next((entry[key] for key in _LABEL_KEYS if isinstance(entry.get(key), str)), "")
    words = " ".join(_MARKUP.sub(" ", printable(named[: 4 * _LONGEST_LABEL])).split())
    return words[:_LONGEST_LABEL].strip() or UNNAMED


def _loaded(texts: Iterable[str]) -> list[Any]:
    """The lists and objects among the texts, as far as they are JSON."""
    values: list[Any] = []
    for text in texts:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, (list, dict)):
            values.append(value)
    return values


def _first(boxes: Iterator[RawBox], limit: int) -> BoxReply:
    # A model caught in a loop writes one and the same box again and again.
    kept: dict[tuple[str, tuple[float, ...]], RawBox] = {}
    left_out = 0
    for box in boxes:
        key = (box.label, box.numbers)
        if len(kept) < limit:
            kept.setdefault(key, box)
        elif key not in kept:
            left_out += 1
    return BoxReply(tuple(kept.values()), left_out)


def _in_value(value: Any) -> Iterator[RawBox]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            given = box_of(node)
            several = given if box_numbers(given) is None and isinstance(given, list) else [given]
            boxes = [numbers for item in several if (numbers := box_numbers(item)) is not None]
            for numbers in boxes:
                yield RawBox(label_of(node), numbers, _score(node), keyed=True)
            if not boxes:
                waiting.extend(reversed(list(node.values())))
        elif isinstance(node, list):
            numbers = box_numbers(node)
            if numbers is not None:
                yield RawBox(UNNAMED, numbers)
            else:
                waiting.extend(reversed(node))


def _in_the_midst(text: str) -> Iterator[RawBox]:
    """A list or object of entries with words before or after it."""
    for opening, closing in ("[]", "{}"):
        start, end = text.find(opening), text.rfind(closing)
        for value in _loaded([text[start : end + 1]] if 0 <= start < end else []):
            yield from (box for box in _in_value(value) if box.keyed)


def _in_flat_objects(text: str) -> Iterator[RawBox]:
    """The whole entries of a list that was cut off."""
    for match in _FLAT_OBJECT.finditer(text):
        for value in _loaded([match[0]]):
            yield from _in_value(value)


def _in_words(text: str) -> Iterator[RawBox]:
    for match in _PLAIN.finditer(text):
        x0, y0, x1, y1 = map(float, match.groups())
        yield RawBox(UNNAMED, (x0, y0, x1, y1))


def _score(entry: dict[str, Any]) -> float | None:
    given = next((entry[key] for key in _SCORE_KEYS if key in entry), None)
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1:
        return None
    return round(float(given), 3)


def _float(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
