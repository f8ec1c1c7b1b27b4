"""Sizes of pictures: measuring costs by the pixel, so big ones are shrunk and drawings cut out of margins."""

from __future__ import annotations

import cv2
import numpy as np


def shrink(rgb: np.ndarray, longest: int) -> tuple[np.ndarray, float]:
    """The picture with its longer side at most `longest` pixels, and the factor it was scaled by (<= 1)."""
    factor = longest / max(rgb.shape[:2])
    if factor >= 1:
        return rgb, 1.0
    height, width = (max(round(side * factor), 1) for side in rgb.shape[:2])
    return cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA), factor


def crop_to(mask: np.ndarray, rgb: np.ndarray, margin: int = 4) -> np.ndarray | None:
    """The part of the picture that holds the mask, with a margin; None where the mask is empty."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    top, left = max(rows[0] - margin, 0), max(columns[0] - margin, 0)
    return rgb[top : rows[-1] + margin + 1, left : columns[-1] + margin + 1]
