"""Two coloured lines that run from left to right: how often they cross.

Each line is a height for every column; where one covers the other its height is interpolated. A crossing
is a change of sign of the difference that goes clearly to both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experts.embedded.colours import Inks, colour_name, find_inks
from experts.embedded.scale import shrink

_LONGEST_SIDE = 400


def crossings(rgb: np.ndarray, colours: Sequence[str] = ()) -> int | None:
    """How often the two widest lines of these colours (of any, where none is given) cross.

    None where there are not two such lines.
    """
    small, _ = shrink(rgb, _LONGEST_SIDE)
    lines = _widest_lines(find_inks(small, least_share=0.001))
    if colours:
        lines = [next((line for line in lines if line.colour == colour), None) for colour in colours]
    if len(lines) < 2 or lines[0] is None or lines[1] is None:
        return None
    first, second = lines[0].heights, lines[1].heights
    both = ~np.isnan(first) & ~np.isnan(second)
    if both.sum() < 8:
        return None
    columns = np.arange(len(first))
    span = slice(*_common_span(first, second))
    difference = _filled(first, columns)[span] - _filled(second, columns)[span]
    return _sign_changes(difference, tolerance=max(1.0, 0.5 * lines[0].thickness))


@dataclass(frozen=True)
class _Line:
    """`heights`: of each column, NaN in gaps."""

    colour: str
    heights: np.ndarray
    thickness: float


def _widest_lines(inks: Inks) -> list[_Line]:
    """Each coloured ink that spans many columns, the longest first."""
    pure = [ink for ink in inks.unmixed() if ink in inks.chromatic()]
    lines = [_Line(colour_name(inks.colours[ink]), *_trace(inks.mask(ink).astype(bool))) for ink in pure]
    wide = [line for line in lines if np.isfinite(line.heights).mean() > 0.3]
    return sorted(wide, key=lambda line: -int(np.isfinite(line.heights).sum()))


def _trace(mask: np.ndarray) -> tuple[np.ndarray, float]:
    """Middle of the ink in each column where it is one compact run, and the run's median length."""
    filled = mask.sum(axis=0)
    top = mask.argmax(axis=0)
    bottom = len(mask) - 1 - mask[::-1].argmax(axis=0)
    compact = (filled > 0) & (bottom - top < 1.3 * filled + 2)
    heights = np.where(compact, (top + bottom) / 2, np.nan)
    return heights, float(np.median(filled[compact])) if compact.any() else 0.0


def _common_span(first: np.ndarray, second: np.ndarray) -> tuple[int, int]:
    ends = [np.flatnonzero(~np.isnan(line))[[0, -1]] for line in (first, second)]
    return int(max(start for start, _ in ends)), int(min(end for _, end in ends)) + 1


def _filled(line: np.ndarray, columns: np.ndarray) -> np.ndarray:
    known = ~np.isnan(line)
    return np.interp(columns, columns[known], line[known])


def _sign_changes(difference: np.ndarray, tolerance: float) -> int:
    signs = np.sign(difference[np.abs(difference) > tolerance])
    return int((signs[1:] != signs[:-1]).sum())
