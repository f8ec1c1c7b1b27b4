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

_MARK_ROOM = 0.15  # of the longest side: how far from the right angle its mark may lie
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
    lengths = _labelled_sides(triangle, right, texts)
    if len(lengths) != 2:
        return None
    slant = lengths.pop("slant", None)
    legs = list(lengths.values())
    if slant is None:
        return math.hypot(*legs)
    return math.sqrt(slant**2 - legs[0] ** 2) if slant > legs[0] else None


def _labelled_sides(triangle: np.ndarray, right: int, texts: Sequence[TextBox]) -> dict[str, float]:
    """The number that stands nearest to the middle of each side; sides without a number are left out."""
    corner, one, two = triangle[right], triangle[(right + 1) % 3], triangle[(right + 2) % 3]
    middles = {"leg": (corner + one) / 2, "other leg": (corner + two) / 2, "slant": (one + two) / 2}
    mark_room = _MARK_ROOM * float(np.linalg.norm(one - two))
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        value = parse_number(text.text)
        value = first_number(text.text) if value is None else value
        centre = np.array(text.centre)
        # What is read at the right angle is its mark, not a number.
        if value is None or value <= 0 or float(np.linalg.norm(centre - corner)) < mark_room:
            continue
        distances = {side: float(np.linalg.norm(middle - centre)) for side, middle in middles.items()}
        side = min(distances, key=lambda name: distances[name])
        found[side] = min(found.get(side, (math.inf, 0.0)), (distances[side], value))
    return {side: value for side, (_, value) in found.items()}
