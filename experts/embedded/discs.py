"""Whether two filled circles touch: each circle is fitted to its own visible rim."""

from __future__ import annotations

import math

import cv2
import numpy as np

from experts.embedded.colours import Inks, find_inks
from experts.embedded.scale import shrink

_LONGEST_SIDE = 640

Disc = tuple[float, float, float]
"""Centre x, centre y, radius, in pixels."""


def discs_touch(rgb: np.ndarray) -> bool | None:
    """Whether the two largest discs meet or overlap; None where there are not two filled discs."""
    small, factor = shrink(rgb, _LONGEST_SIDE)
    discs = largest_discs(find_inks(small))
    if len(discs) < 2:
        return None
    (x1, y1, r1), (x2, y2, r2) = discs[:2]
    return math.hypot(x1 - x2, y1 - y2) - r1 - r2 < max(1.0 * factor, 0.5)


def largest_discs(inks: Inks) -> list[Disc]:
    """The patches that look like discs (whole, or partly covered by another), two an ink, largest first."""
    candidates: list[tuple[float, Disc]] = []
    for ink in range(1, len(inks.colours)):
        mask = cv2.morphologyEx(inks.mask(ink), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
        count, patches, stats, _ = cv2.connectedComponentsWithStats(mask)
        for patch in np.argsort(-stats[1:, cv2.CC_STAT_AREA])[:2] + 1 if count > 1 else ():
            disc = _fit(patches == patch, float(stats[patch, cv2.CC_STAT_AREA]))
            if disc is not None:
                candidates.append((float(stats[patch, cv2.CC_STAT_AREA]), disc))
    return [disc for _, disc in sorted(candidates, reverse=True)]


def _fit(patch: np.ndarray, pixels: float) -> Disc | None:
    if pixels < 0.0008 * patch.size:
        return None
    (x, y), radius = cv2.minEnclosingCircle(cv2.findNonZero(patch.astype(np.uint8)))
    # A covered disc still shows a good part of itself; a bar or a letter fills less of its circle.
    return (x, y, radius) if pixels > 0.4 * math.pi * radius**2 else None
