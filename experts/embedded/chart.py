"""A bar chart read as a whole: each bar's label and value, from the bars and the texts in the picture."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from experts.embedded.bars import Bar, BarRow, find_bars
from experts.embedded.brief import TextBox
from experts.embedded.colours import ink_mask
from experts.embedded.numbers import parse_number
from experts.embedded.wordboxes import split_words

_LABEL_ROOM = 40  # pixels from the base line within which labels begin
_SUPPORTED = 3  # marks from which an axis may contradict a printed number
_PRINTED_TRUST = 0.08  # of the longest bar: a printed number further off than this is not believed


@dataclass(frozen=True)
class Reading:
    """One bar as the chart says it; `value` is None where neither a printed number nor an axis gives one."""

    label: str
    value: float | None
    length: float


@dataclass(frozen=True)
class Axis:
    """Value per pixel of bar length, counted from the base, the value at the base, and how many marks say so."""

    slope: float
    offset: float
    support: int

    def at(self, length: float) -> float:
        return self.slope * length + self.offset


def read_chart(rgb: np.ndarray, texts: Sequence[TextBox]) -> list[Reading] | None:
    """All bars from left to right or top to bottom; None where the picture is not a bar chart."""
    row = find_bars(rgb)
    if row is None:
        return None
    ink = ink_mask(rgb, 90)
    pieces = [piece for text in texts for piece in split_words(text, ink)]
    numbers = [(value, piece) for piece in pieces if (value := parse_number(piece.text)) is not None]
    names = [piece for piece in pieces if parse_number(piece.text) is None]
    axis = find_axis(row, numbers)
    longest = max(bar.length for bar in row.bars)
    labels = _without_a_lone_accent([_label(row, bar, names) for bar in row.bars])
    return [
        Reading(label, _value(row, bar, numbers, axis, longest), bar.length)
        for label, bar in zip(labels, row.bars, strict=True)
    ]


def find_axis(row: BarRow, numbers: Sequence[tuple[float, TextBox]]) -> Axis | None:
    """The value axis: the line through most tick labels and numbers printed at bars, by least squares over those."""
    ticks = [(value, text) for value, text in numbers if _beside_bars(row, text)]
    marks = [(_length_at(row, text), value) for value, text in ticks]
    if row.upright:
        # The stroke of a tick mark is often read as a last 1: "4-" as 41.
        marks += [
            (_length_at(row, text), float(text.text[:-1])) for _, text in ticks if re.fullmatch(r"\d+1", text.text)
        ]
    marks += [(bar.length, value) for bar in row.bars if (value := _printed(bar, row, numbers)) is not None]
    best: list[tuple[float, float]] = []
    for (one, low), (two, high) in combinations(marks, 2):
        if abs(one - two) < 5 or low == high:
            continue
        slope = (high - low) / (two - one)
        agreeing = [(at, value) for at, value in marks if abs((value - low) / slope + one - at) < 4]
        if slope > 0 and len(agreeing) > len(best):
            best = agreeing
    if len(best) < 2:
        return None
    slope, offset = np.polyfit([at for at, _ in best], [value for _, value in best], 1)
    return Axis(float(slope), float(offset), len(best))


def _length_at(row: BarRow, text: TextBox) -> float:
    """How long a bar would be that ends at the text's middle."""
    x, y = text.centre
    return row.base - y if row.upright else x - row.base


def _beside_bars(row: BarRow, text: TextBox) -> bool:
    """Whether a number stands where tick labels stand: left of upright bars, below lying ones."""
    if row.upright:
        return text.x1 <= row.bars[0].low + 3 and text.centre[1] < row.base + 14
    return text.y0 >= row.bars[-1].high - 3


def _value(
    row: BarRow, bar: Bar, numbers: Sequence[tuple[float, TextBox]], axis: Axis | None, longest: float
) -> float | None:
    """The number printed at the bar's end unless a well-supported axis contradicts it, else what the axis says."""
    printed = _printed(bar, row, numbers)
    if axis is None:
        return printed
    measured = axis.at(bar.length)
    if printed is None:
        return measured
    contradicted = abs(printed - measured) > _PRINTED_TRUST * axis.slope * longest
    return measured if contradicted and axis.support >= _SUPPORTED else printed


def _printed(bar: Bar, row: BarRow, numbers: Sequence[tuple[float, TextBox]]) -> float | None:
    """The number nearest to the bar's end among those that could be printed there."""
    near = [(distance, value) for value, text in numbers if (distance := _from_end(row, bar, text)) is not None]
    return min(near)[1] if near else None


def _from_end(row: BarRow, bar: Bar, text: TextBox) -> float | None:
    """Distance of a number from the bar's end where it could be printed there, else None."""
    x, y = text.centre
    reach = 0.3 * bar.thickness + 4
    across, gap = (x, bar.end - text.y1) if row.upright else (y, text.x0 - bar.end)
    within = bar.low - reach < across < bar.high + reach
    return abs(gap) if within and -8 < gap < 26 else None


def _label(row: BarRow, bar: Bar, names: Sequence[TextBox]) -> str:
    """The texts under (or left of) the bar, joined in reading order."""
    low, high = bar.middle - row.pitch / 2, bar.middle + row.pitch / 2
    if row.upright:
        mine = [t for t in names if row.base - 4 < t.y0 < row.base + _LABEL_ROOM and low < t.centre[0] < high]
    else:
        mine = [t for t in names if t.x1 < row.base + 5 and low < t.centre[1] < high]
    ordered = sorted(mine, key=lambda text: (round(text.y0 / 8), text.x0))
    return _tidy(" ".join(text.text for text in ordered))


def _without_a_lone_accent(labels: list[str]) -> list[str]:
    """Where one label alone has accents, a speck was read as one; where several have, so has the language."""
    plain = [
        "".join(sign for sign in unicodedata.normalize("NFKD", label) if not unicodedata.combining(sign))
        for label in labels
    ]
    accented = sum(label != bare for label, bare in zip(labels, plain, strict=True))
    return plain if accented == 1 and len(labels) > 1 else labels


def _tidy(label: str) -> str:
    """Undo the commonest slips of character recognition inside a word of letters: 0 for o, 1 for l."""
    return re.sub(
        r"(?<=[A-Za-z])[01](?=[a-z]|\b)", lambda match: "o" if match[0] == "0" else "l", label.strip(" .,'-_")
    )
