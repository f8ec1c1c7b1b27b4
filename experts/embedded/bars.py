"""Bars of a bar chart as rectangles on a common base, upright or lying."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from experts.embedded.colours import find_inks

_LEAST_THICKNESS = 5
_LARGEST_SHARE = 0.5  # of the picture: larger blocks are backgrounds


@dataclass(frozen=True)
class Bar:
    """One bar along its axis: it grows from `base` to `end` and lies between `low` and `high` across; all in
    pixels.

    Upright bars have base and end in y (end above base), lying ones in x.
    """

    base: float
    end: float
    low: float
    high: float

    @property
    def length(self) -> float:
        return abs(self.end - self.base)

    @property
    def thickness(self) -> float:
        return self.high - self.low

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class BarRow:
    """The bars of a chart in order across; `upright` tells how they stand."""

    upright: bool
    bars: tuple[Bar, ...]

    @property
    def base(self) -> float:
        return float(np.median([bar.base for bar in self.bars]))

    @property
    def pitch(self) -> float:
        """Distance between the middles of neighbouring bars."""
        middles = [bar.middle for bar in self.bars]
        return float(np.median(np.diff(middles))) if len(middles) > 1 else 2 * self.bars[0].thickness


def find_bars(rgb: np.ndarray) -> BarRow | None:
    """The largest group of filled rectangles that stand on one line, or None where there are not two."""
    blocks = _blocks(rgb)
    if len(blocks) < 2:
        return None
    bottoms = [(y + height, width * height) for _, y, width, height in blocks]
    lefts = [(x, width * height) for x, _, width, height in blocks]
    (upright_base, upright_weight), (lying_base, lying_weight) = _common(bottoms), _common(lefts)
    if upright_weight == lying_weight == 0:
        return None
    upright = upright_weight >= lying_weight
    if upright:
        bars = [Bar(y + h, y, x, x + w) for x, y, w, h in blocks if abs(y + h - upright_base) <= 3]
    else:
        bars = [Bar(x, x + w, y, y + h) for x, y, w, h in blocks if abs(x - lying_base) <= 3]
    # All bars of a chart are equally thick; what is not is a letter or a frame.
    usual = max(bars, key=lambda bar: bar.length * bar.thickness).thickness
    even = [bar for bar in bars if abs(bar.thickness - usual) <= 3]
    return BarRow(upright, tuple(sorted(even, key=lambda bar: bar.middle))) if len(even) >= 2 else None


def _common(positions: list[tuple[int, int]]) -> tuple[float, int]:
    """The position that most area shares to 2 pixels, in at least two blocks, and how much area it is."""
    best = (0.0, 0)
    for at, _ in positions:
        sharing = [(other, area) for other, area in positions if abs(other - at) <= 2]
        area = sum(area for _, area in sharing)
        if len(sharing) >= 2 and area > best[1]:
            best = float(np.median([other for other, _ in sharing])), area
    return best


def _blocks(rgb: np.ndarray) -> list[tuple[int, int, int, int]]:
    """(x, y, width, height) of every filled rectangle."""
    inks = find_inks(rgb, least_share=0.001)
    found = []
    for ink in range(1, len(inks.colours)):
        if np.ptp(inks.colours[ink]) < 12 and inks.colours[ink].min() > 205:
            continue
        mask = cv2.morphologyEx(inks.mask(ink), cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))
        mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
        contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        for contour in contours:
            x, y, width, height = cv2.boundingRect(contour)
            filled = cv2.contourArea(contour) > 0.7 * (width - 1) * (height - 1)
            sized = min(width, height) >= _LEAST_THICKNESS and width * height < _LARGEST_SHARE * mask.size
            if filled and sized:
                found.append((x, y, width, height))
    return found
