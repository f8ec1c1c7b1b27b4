"""Filled coloured shapes of a picture: kind, colour, place and size of each.

Ink by ink, the connected patches that fill their own outline are shapes; thin strokes, rings and specks
are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from experts.embedded.colours import Inks, colour_name, find_inks
from experts.embedded.scale import shrink

_LONGEST_SIDE = 480
_LEAST_AREA = 0.0006  # of the picture
_STAR_SOLIDITY = 0.8


@dataclass(frozen=True)
class Shape:
    """One filled shape; `box` is (x0, y0, x1, y1) and `area` in pixels of the whole picture."""

    kind: str
    colour: str
    box: tuple[float, float, float, float]
    centre: tuple[float, float]
    area: float

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "kind": self.kind,
            "colour": self.colour,
            "box": [round(value, 1) for value in self.box],
            "centre": [round(value, 1) for value in self.centre],
            "area": round(self.area, 1),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Shape:
        """The shape that `record` describes (see `experts.embedded.brief` for the layout)."""
        x0, y0, x1, y1 = record["box"]
        x, y = record["centre"]
        return cls(record["kind"], record["colour"], (x0, y0, x1, y1), (x, y), float(record["area"]))


def find_shapes(rgb: np.ndarray) -> list[Shape]:
    """All filled shapes of an H x W x 3 uint8 picture, largest first."""
    small, factor = shrink(rgb, _LONGEST_SIDE)
    inks = find_inks(small)
    least = max(_LEAST_AREA * inks.labels.size, 30.0)
    found = [shape for ink in range(1, len(inks.colours)) for shape in _of_one_ink(inks, ink, least, 1 / factor)]
    return sorted(found, key=lambda shape: -shape.area)


def _of_one_ink(inks: Inks, ink: int, least: float, scale: float) -> list[Shape]:
    mask = cv2.morphologyEx(inks.mask(ink), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    count, patches, stats, _ = cv2.connectedComponentsWithStats(mask)
    colour = colour_name(inks.colours[ink])
    shapes = []
    for patch in range(1, count):
        x, y, width, height, pixels = (int(value) for value in stats[patch])
        if pixels < least:
            continue
        piece = (patches[y : y + height, x : x + width] == patch).astype(np.uint8)
        contours, _ = cv2.findContours(piece, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE, offset=(x, y))
        contour = max(contours, key=cv2.contourArea)
        enclosed = cv2.contourArea(contour)
        if enclosed < 1 or pixels < 0.8 * enclosed:
            continue
        moments = cv2.moments(contour)
        centre = moments["m10"] / enclosed * scale, moments["m01"] / enclosed * scale
        box = x * scale, y * scale, (x + width) * scale, (y + height) * scale
        shapes.append(Shape(kind_of(contour), colour, box, centre, pixels * scale**2))
    return shapes


def kind_of(contour: np.ndarray) -> str:
    """The kind of a filled shape from its outer contour, by how well simple figures fit its hull."""
    hull = cv2.convexHull(contour)
    area = cv2.contourArea(hull)
    perimeter = cv2.arcLength(hull, True)
    if area < 1 or perimeter <= 0:
        return "bar"
    (_, sides, _) = cv2.minAreaRect(hull)
    aspect = min(sides) / max(max(sides), 1e-6)
    triangle_area, _ = cv2.minEnclosingTriangle(hull)
    if aspect < 0.3:
        return "bar"
    if cv2.contourArea(contour) < _STAR_SOLIDITY * area:
        return "star"
    if area > 0.85 * triangle_area:
        return "triangle"
    if area > 0.9 * sides[0] * sides[1]:
        return "square" if aspect > 0.8 else "rectangle"
    return _round_kind(hull, 4 * math.pi * area / perimeter**2)


def _round_kind(hull: np.ndarray, roundness: float) -> str:
    corners = len(cv2.approxPolyDP(hull, 0.035 * cv2.arcLength(hull, True), True))
    if roundness > 0.93 or corners > 6:
        return "circle"
    return {4: "diamond", 5: "pentagon", 6: "hexagon"}.get(corners, "blob")
