"""Chart-Reader: values and extremes of bar charts, given the texts in the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from experts.embedded.bars import find_bars
from experts.embedded.brief import Brief
from experts.embedded.chart import Reading, read_chart
from experts.embedded.numbers import format_number
from experts.embedded.program import Measurement, Program
from experts.embedded.words import extreme, mentions


def read_value(brief: Brief, rgb: np.ndarray) -> str | None:
    """The value of the bar that the question names; without a named bar, of what it asks for otherwise."""
    readings = _readings(brief, rgb)
    bar = _named_bar(brief.question, readings)
    if bar is None:
        return _extreme_label(readings, least=extreme(brief.question) == "least") if extreme(brief.question) else None
    return None if bar.value is None else format_number(bar.value)


def find_extreme(brief: Brief, rgb: np.ndarray) -> str | None:
    """The label of the longest bar, or of the shortest where the question asks for the least."""
    readings = _readings(brief, rgb)
    bar = _named_bar(brief.question, readings)
    if bar is not None and bar.value is not None and extreme(brief.question) is None:
        return format_number(bar.value)
    return _extreme_label(readings, least=extreme(brief.question) == "least")


def _readings(brief: Brief, rgb: np.ndarray) -> list[Reading]:
    # Without texts a chart has bars but nothing to say about them.
    return read_chart(rgb, brief.texts) or [] if brief.texts else []


def _named_bar(question: str, readings: Sequence[Reading]) -> Reading | None:
    named = [reading for reading in readings if mentions(question, reading.label)]
    return max(named, key=lambda reading: len(reading.label), default=None)


def _extreme_label(readings: Sequence[Reading], *, least: bool) -> str | None:
    if not readings:
        return None
    return (min if least else max)(readings, key=lambda reading: reading.length).label or None


class ChartReader(Program):
    """Reads bar charts. Out of its field it counts the blocks that stand in line, as if they were bars."""

    tasks: ClassVar[Mapping[str, Measurement]] = {
        "value_reading": read_value,
        "extreme_finding": find_extreme,
    }

    def habit(self, brief: Brief, rgb: np.ndarray) -> str | None:
        row = find_bars(rgb)
        return str(len(row.bars)) if row else None

    def fitting_task(self, question: str, rgb: np.ndarray) -> str | None:
        return "extreme_finding" if extreme(question) else "value_reading"
