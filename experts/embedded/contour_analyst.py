"""Contour-Analyst: closed outlines, linked into chains or nested in each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import cv2
import numpy as np

from experts.embedded.brief import Brief
from experts.embedded.outlines import chain_length, nesting_depth, stroke_mask
from experts.embedded.program import Measurement, Program


def count_chain(brief: Brief, rgb: np.ndarray) -> str | None:
    """How many outlines hang together."""
    count = chain_length(rgb)
    return str(count) if count else None


def measure_nesting(brief: Brief, rgb: np.ndarray) -> str | None:
    """How many outlines lie in one another."""
    depth = nesting_depth(rgb)
    return str(depth) if depth else None


class ContourAnalyst(Program):
    """Counts outlines by the faces they enclose. Out of its field it counts the largest figure's corners."""

    tasks: ClassVar[Mapping[str, Measurement]] = {
        "nesting_depth": measure_nesting,
        "object_counting": count_chain,
        # Whatever a diagram question asks, this program's diagrams are nested outlines.
        "contact_check": measure_nesting,
        "route_following": measure_nesting,
    }

    def habit(self, brief: Brief, rgb: np.ndarray) -> str | None:
        strokes = stroke_mask(rgb)
        if strokes is None:
            return None
        contours, _ = cv2.findContours(strokes, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        hull = cv2.convexHull(max(contours, key=cv2.contourArea))
        corners = cv2.approxPolyDP(hull, 0.03 * cv2.arcLength(hull, True), True)
        return f"{len(corners)} corners"
