"""A right triangle with labelled sides: the length of the side without a number.

The corners come from the drawing, the numbers from the text that was read; each number belongs to the side
whose middle is nearest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np

from experts.embedded.brief import TextBox
from experts.embedded.colours import ink_mask
from experts.embedded.numbers import first_number, parse_number

_SQUARE_ENOUGH = 0.2  # cosine of the largest angle that still counts as a right angle


def corners(rgb: np.ndarray) -> np.ndarray | None:
    """3 x 2 corners (x, y) of the largest drawn triangle, or None where nothing is drawn."""
    strokes = ink_mask(rgb)
    count, patches, stats, _ = cv2.connectedComponentsWithStats(strokes)
    if count < 2:
        return None
    largest = 1 + int((stats[1:, cv2.CC_STAT_WIDTH] * stats[1:, cv2.CC_STAT_HEIGHT]).argmax())
    hull = cv2.convexHull(cv2.findNonZero((patches == largest).astype(np.uint8)))
    area, triangle = cv2.minEnclosingTriangle(hull)
    if triangle is None or area < 50 or cv2.contourArea(hull) < 0.8 * area:
        return None
    return triangle.reshape(3, 2)


def right_corner(triangle: np.ndarray) -> int | None:
    """Index of the corner with the right angle, or None where there is none."""
    cosines = []
    for corner in range(3):
        one, two = (
            triangle[(corner + 1) % 3] - triangle[corner],
            triangle[(corner + 2) % 3] - triangle[corner],
        )
        cosines.append(abs(float(one @ two)) / max(float(np.linalg.norm(one) * np.linalg.norm(two)), 1e-9))
    best = int(np.argmin(cosines))
    return best if cosines[best] < _SQUARE_ENOUGH else None


def missing_side(triangle: np.ndarray, right: int, texts: Sequence[TextBox]) -> float | None:
    """The third side's length by Pythagoras, or None where the texts do not give exactly two sides."""
    one, two = (right + 1) % 3, (right + 2) % 3
    middles = {
        "leg": (triangle[right] + triangle[one]) / 2,
        "other leg": (triangle[right] + triangle[two]) / 2,
        "slant": (triangle[one] + triangle[two]) / 2,
    }
    lengths: dict[str, float] = {}
    for text in texts:
        value = parse_number(text.text)
        value = first_number(text.text) if value is None else value
        if value is not None and value > 0:
            side = min(middles, key=lambda name: float(np.linalg.norm(middles[name] - np.array(text.centre))))
            lengths.setdefault(side, value)
    if len(lengths) != 2:
        return None
    slant = lengths.pop("slant", None)
    legs = list(lengths.values())
    if slant is None:
        return math.hypot(*legs)
    return math.sqrt(slant**2 - legs[0] ** 2) if slant > legs[0] else None
