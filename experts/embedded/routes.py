"""Coloured routes between four stations on a map: which stations each route ends at.

The stations are the dark letters at the top (A), right (B), bottom (C) and left (D), as on a compass. A
route's ends are where its ink comes nearest to a station's side of the map.
"""

from __future__ import annotations

import cv2
import numpy as np

from experts.embedded.colours import find_inks
from experts.embedded.scale import shrink

_LONGEST_SIDE = 400
# Where each station's letter stands, as shares of width and height.
_STATIONS = {"A": (0.5, 0.055), "B": (0.945, 0.5), "C": (0.5, 0.945), "D": (0.055, 0.5)}
_LETTER_ROOM = 0.07  # of the map's side: how far from its place a letter's ink may lie
_DOOR_ROOM = 0.095  # of the map's side: how far from its letter a route may end
_LEAST_SHARE = 0.0015  # of the pixels: an ink with fewer is no route
_LEAST_CONTRAST = 20  # in some channel, between the inks of two routes
_LEAST_CHROMA = 24  # range of channels of a pixel that belongs to a route
_LEAST_PIECE = 0.0002  # of the pixels: a smaller patch of a route's ink is the smoothed rim of a letter


def routes_between(rgb: np.ndarray, one: str, two: str) -> int | None:
    """How many routes join two stations ("A" to "D"), or None where a station is not on the map."""
    small, _ = shrink(rgb, _LONGEST_SIDE)
    stations = find_stations(small)
    if one not in stations or two not in stations:
        return None
    inks = find_inks(small, least_share=_LEAST_SHARE, apart=_LEAST_CONTRAST)
    # The grey rims of letters come near to some route's ink.
    coloured = (_range_of_channels(small) > _LEAST_CHROMA).astype(np.uint8)
    routes = [_without_specks(inks.mask(ink) & coloured) for ink in inks.unmixed() if ink in inks.chromatic()]
    if not routes:
        return None
    doors = _doors(np.logical_or.reduce(routes), stations)
    least = 0.00005 * inks.labels.size
    ends = [{name for name, door in doors.items() if (route & door).sum() > least} for route in routes]
    return sum(stops == {one, two} for stops in ends)


def find_stations(rgb: np.ndarray) -> dict[str, tuple[float, float]]:
    """Centre (x, y) in pixels of each station's letter that stands at its place."""
    height, width = rgb.shape[:2]
    lightest = np.maximum(np.maximum(rgb[..., 0], rgb[..., 1]), rgb[..., 2])
    letters = (lightest < 150) & (_range_of_channels(rgb) < 40)
    found: dict[str, tuple[float, float]] = {}
    for name, (u, v) in _STATIONS.items():
        left, right = (max(round((u + side) * width), 0) for side in (-_LETTER_ROOM, _LETTER_ROOM))
        top, bottom = (max(round((v + side) * height), 0) for side in (-_LETTER_ROOM, _LETTER_ROOM))
        rows, columns = np.nonzero(letters[top:bottom, left:right])
        if len(rows) > 0.0002 * letters.size:
            found[name] = (left + float(columns.mean()), top + float(rows.mean()))
    return found


def _range_of_channels(rgb: np.ndarray) -> np.ndarray:
    """Largest less smallest channel of each pixel: 0 for greys."""
    red, green, blue = (rgb[..., channel] for channel in range(3))
    return np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)


def _without_specks(mask: np.ndarray) -> np.ndarray:
    _, patches, stats, _ = cv2.connectedComponentsWithStats(mask)
    large = stats[:, cv2.CC_STAT_AREA] > _LEAST_PIECE * mask.size
    large[0] = False
    return large[np.asarray(patches, np.intp)]


def _doors(any_route: np.ndarray, stations: dict[str, tuple[float, float]]) -> dict[str, np.ndarray]:
    """For each station the pixels where its routes must end: near its letter, on the map's edge."""
    height, width = any_route.shape
    rows, columns = np.ogrid[:height, :width]
    used_rows, used_columns = np.flatnonzero(any_route.any(axis=1)), np.flatnonzero(any_route.any(axis=0))
    slack = 0.02 * width
    edges = {
        "A": rows <= used_rows[0] + slack,
        "B": columns >= used_columns[-1] - slack,
        "C": rows >= used_rows[-1] - slack,
        "D": columns <= used_columns[0] + slack,
    }
    return {
        name: edges[name] & ((columns - x) ** 2 + (rows - y) ** 2 < (_DOOR_ROOM * width) ** 2)
        for name, (x, y) in stations.items()
    }
