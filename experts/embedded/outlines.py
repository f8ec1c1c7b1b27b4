"""Closed outlines drawn as thin strokes: how deep they nest, and how many a chain of interlocked ones holds.

Both are read off the faces that the strokes cut the plane into, not off the curves (see `faces`).
"""

from __future__ import annotations

import cv2
import numpy as np

from experts.embedded.colours import ink_mask
from experts.embedded.faces import odd_faces
from experts.embedded.scale import crop_to, shrink

_LONGEST_SIDE = 720
_ENLARGE_BELOW = 300
_LEAST_NESTED = 0.0005  # of the drawing: an outline is no speck


def stroke_mask(rgb: np.ndarray) -> np.ndarray | None:
    """The drawing without its margins as H x W uint8 (1 on strokes), at a size where faces are separate; None
    where nothing is drawn."""
    drawing = crop_to(ink_mask(rgb), rgb)
    if drawing is None:
        return None
    drawing, _ = shrink(drawing, _LONGEST_SIDE)
    if max(drawing.shape[:2]) < _ENLARGE_BELOW:
        drawing = cv2.resize(drawing, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    strokes = ink_mask(drawing)
    return cv2.copyMakeBorder(strokes, 2, 2, 2, 2, cv2.BORDER_CONSTANT, value=0) if strokes.any() else None


def nesting_depth(rgb: np.ndarray) -> int:
    """How many outlines lie inside one another at the deepest place; 0 where nothing is enclosed."""
    strokes = stroke_mask(rgb)
    if strokes is None:
        return 0
    contours, hierarchy = cv2.findContours(strokes, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
    if hierarchy is None:
        return 0
    parents = hierarchy[0][:, 3]
    depths = [
        _holes_on_the_way(index, parents)
        for index, contour in enumerate(contours)
        if cv2.contourArea(contour) > _LEAST_NESTED * strokes.size
    ]
    return max(depths, default=0)


def _holes_on_the_way(index: int, parents: np.ndarray) -> int:
    """Faces entered on the way from the outside to a contour: every second contour is a face's rim."""
    level = 0
    while parents[index] >= 0:
        index, level = parents[index], level + 1
    return (level + 1) // 2


def chain_length(rgb: np.ndarray) -> int:
    """How many outlines hang together, each overlapping its neighbours; 0 where nothing is enclosed.

    Every outline has one face that lies in it alone. Groups that lie apart are added; groups inside
    another are not, since they are not part of the chain.
    """
    strokes = stroke_mask(rgb)
    if strokes is None:
        return 0
    count, groups, stats, _ = cv2.connectedComponentsWithStats(strokes, connectivity=8)
    total = 0
    for group in range(1, count):
        x, y, width, height, pixels = (int(value) for value in stats[group])
        if pixels >= 40 and not _inside_another(group, stats):
            piece = (groups[y : y + height, x : x + width] == group).astype(np.uint8)
            total += odd_faces(piece)
    return total


def _inside_another(group: int, stats: np.ndarray) -> bool:
    x, y, width, height = stats[group, :4]
    outer = (stats[:, 0] < x) & (stats[:, 1] < y)
    outer &= (stats[:, 0] + stats[:, 2] > x + width) & (stats[:, 1] + stats[:, 3] > y + height)
    outer[0] = False
    return bool(outer.any())
