"""Geometer: lengths in right triangles, given the texts in the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from experts.embedded.brief import Brief, TextBox
from experts.embedded.numbers import format_number
from experts.embedded.program import Measurement, Program
from experts.embedded.triangle import corners, missing_side, right_corner
from experts.embedded.words import names, same_name


def third_side(brief: Brief, rgb: np.ndarray) -> str | None:
    """The side without a number, by Pythagoras."""
    triangle = corners(rgb)
    right = None if triangle is None else right_corner(triangle)
    if triangle is None or right is None or not brief.texts or not _asks_about(brief.question, brief.texts):
        return None
    length = missing_side(triangle, right, brief.texts)
    return None if length is None else format_number(length)


def _asks_about(question: str, texts: Sequence[TextBox]) -> bool:
    """False where the question names a side and the sides in the picture have other names."""
    labels = [label for text in texts for label in names(f"side {text.text}")]
    return not labels or all(any(same_name(name, label) for label in labels) for name in names(question))


class Geometer(Program):
    """Reckons in right triangles. Out of its field it measures the sharpest angle of the largest triangle."""

    tasks: ClassVar[Mapping[str, Measurement]] = {"right_triangle": third_side}

    def habit(self, brief: Brief, rgb: np.ndarray) -> str | None:
        triangle = corners(rgb)
        return None if triangle is None else f"{_sharpest_angle(triangle):.0f} degrees"


def _sharpest_angle(triangle: np.ndarray) -> float:
    angles = []
    for corner in range(3):
        one, two = (
            triangle[(corner + 1) % 3] - triangle[corner],
            triangle[(corner + 2) % 3] - triangle[corner],
        )
        cosine = float(one @ two) / max(float(np.linalg.norm(one) * np.linalg.norm(two)), 1e-9)
        angles.append(float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))))
    return min(angles)
