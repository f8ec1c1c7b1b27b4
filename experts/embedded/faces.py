"""The faces that strokes cut the plane into, coloured like a chess board: crossing a stroke changes the
colour.

Outside is even, inside one outline odd, inside two even again. So the odd faces of a chain of outlines are
as many as its links, whatever small even faces lie where links overlap or where their corners happen to
meet.
"""

from __future__ import annotations

import cv2
import numpy as np

_MOST_FACES = 200  # more is noise or writing, not a drawing of outlines
_LEAST_FACE = 0.004  # of the largest face inside: slivers are no faces


def odd_faces(strokes: np.ndarray) -> int:
    """Number of odd faces of an H x W uint8 mask of connected strokes; 0 where it is no drawing."""
    framed = cv2.copyMakeBorder(strokes, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    labels, areas = _faces(framed)
    if not 2 <= len(areas) <= _MOST_FACES:
        return 0
    borders = _shared_borders(_spread(labels), len(areas))
    return sum(_parities(borders))


def _faces(strokes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels (H x W, -1 on strokes and slivers, 0 outside) and areas of the faces."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(1 - strokes, connectivity=4)
    areas = stats[:, cv2.CC_STAT_AREA].copy()
    areas[0] = 0
    outside = labels[0, 0]
    inside = np.delete(areas, outside)
    keep = np.flatnonzero(areas >= max(4, _LEAST_FACE * inside.max()))
    order = [outside, *(face for face in keep if face != outside)]
    renamed = np.full(len(areas), -1)
    renamed[order] = np.arange(len(order))
    return renamed[np.asarray(labels, np.intp)], areas[order]


def _spread(labels: np.ndarray) -> np.ndarray:
    """Give every pixel without a face the nearest one, so that faces meet in the middle of strokes."""
    bare = (labels < 0).astype(np.uint8)
    _, nearest = cv2.distanceTransformWithLabels(bare, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    nearest = np.asarray(nearest, np.intp)
    face_of = np.zeros(int(nearest.max()) + 1, labels.dtype)
    face_of[nearest[bare == 0]] = labels[bare == 0]
    return face_of[nearest]


def _shared_borders(labels: np.ndarray, count: int) -> np.ndarray:
    """count x count: length in pixels of the border between two faces."""
    pairs = np.concatenate(
        [
            np.stack([labels[:, :-1].ravel(), labels[:, 1:].ravel()]),
            np.stack([labels[:-1].ravel(), labels[1:].ravel()]),
        ],
        axis=1,
    )
    pairs = pairs[:, pairs[0] != pairs[1]]
    borders = np.bincount(pairs[0] * count + pairs[1], minlength=count * count).reshape(count, count)
    return borders + borders.T


def _parities(borders: np.ndarray) -> list[int]:
    """0 or 1 for each face, walking from the outside (face 0) over the longest border that leads to a new
    face.

    Faces that meet only at a crossing share a few pixels there; the longest border is always a real
    stroke.
    """
    parity: list[int] = [0] * len(borders)
    reached = np.zeros(len(borders), bool)
    reached[0] = True
    while not reached.all():
        open_borders = np.where(reached[:, None] & ~reached[None, :], borders, -1)
        known, new = np.unravel_index(int(open_borders.argmax()), borders.shape)
        parity[new] = 1 - parity[known]
        reached[new] = True
    return parity
