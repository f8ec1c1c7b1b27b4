"""Texts of several words taken apart: neighbouring labels of a chart are often read as one line.

The words' places come from the picture: the line is cut at its widest gaps.
"""

from __future__ import annotations

import numpy as np

from experts.embedded.brief import TextBox
from experts.embedded.numbers import parse_number


def split_words(text: TextBox, ink: np.ndarray) -> list[TextBox]:
    """One box for each word of a text, as tight as its ink; `ink` is H x W, 1 where something is drawn."""
    parts = text.text.split()
    if len(parts) < 2 or text.x1 - text.x0 < 1.5 * text.height or parse_number(text.text) is not None:
        return [_tight(text, ink)]
    ends = _runs(text, ink, len(parts)) or _shares(text, parts)
    return [TextBox(part, x0, text.y0, x1, text.y1) for part, (x0, x1) in zip(parts, ends, strict=True)]


def _tight(text: TextBox, ink: np.ndarray) -> TextBox:
    """The box drawn in to the ink inside, leaving out its rim, where neighbours and axes reach in."""
    rim = 0.15 * text.height
    top, left = max(int(text.y0 + rim), 0), max(int(text.x0) + 2, 0)
    inside = ink[top : max(int(text.y1 - rim) + 1, 0), left : max(int(text.x1) - 1, 0)]
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows):
        return text
    return TextBox(
        text.text,
        left + float(columns[0]),
        top + float(rows[0]),
        left + float(columns[-1]) + 1,
        top + float(rows[-1]) + 1,
    )


def _runs(text: TextBox, ink: np.ndarray, count: int) -> list[tuple[float, float]] | None:
    """Ends of the `count` runs of ink that the widest gaps leave; None where there are not so many gaps."""
    # The middle of the line alone: the box's rim may hold an axis and its tick marks.
    rim = 0.3 * text.height
    top, bottom = max(int(text.y0 + rim), 0), max(int(text.y1 - rim) + 1, 0)
    left, right = max(int(text.x0), 0), max(int(text.x1) + 1, 0)
    inside = np.flatnonzero(ink[top:bottom, left:right].any(axis=0))
    gaps = np.diff(inside)
    widest = np.sort(np.argsort(-gaps, kind="stable")[: count - 1])
    if len(inside) < count or len(widest) < count - 1 or gaps[widest].min() < 3:
        return None
    starts, stops = inside[[0, *(widest + 1)]], inside[[*widest, -1]]
    return [(left + float(start), left + float(stop) + 1) for start, stop in zip(starts, stops, strict=True)]


def _shares(text: TextBox, parts: list[str]) -> list[tuple[float, float]]:
    """Ends of the words as if all letters were equally wide."""
    width = (text.x1 - text.x0) / len(text.text)
    ends, at = [], 0
    for part in parts:
        at = text.text.index(part, at)
        ends.append((text.x0 + at * width, text.x0 + (at + len(part)) * width))
        at += len(part)
    return ends
