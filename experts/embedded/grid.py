"""Rows and columns of a ruled grid: lines are the rows and columns of pixels that are nearly all ink."""

from __future__ import annotations

import numpy as np

from experts.embedded.colours import ink_mask
from experts.embedded.scale import crop_to

_FULL = 0.75  # share of ink that makes a row of pixels part of a ruled line


def grid_size(rgb: np.ndarray) -> tuple[int, int] | None:
    """(rows, columns), or None where the picture is not a ruled grid."""
    ink = ink_mask(rgb, 70)
    grid = crop_to(ink, ink, margin=0)
    if grid is None:
        return None
    rows, columns = _lines(grid.mean(axis=1)) - 1, _lines(grid.mean(axis=0)) - 1
    return (rows, columns) if rows >= 1 and columns >= 1 else None


def _lines(share: np.ndarray) -> int:
    """Number of runs of full rows."""
    full = np.concatenate([[False], share > _FULL])
    return int((full[1:] & ~full[:-1]).sum())
