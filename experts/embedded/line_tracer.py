"""Line-Tracer: lines that cross, routes between stations, ruled grids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from experts.embedded.brief import Brief
from experts.embedded.colours import find_inks
from experts.embedded.curves import crossings
from experts.embedded.grid import grid_size
from experts.embedded.program import Measurement, Program
from experts.embedded.routes import find_stations, routes_between
from experts.embedded.words import stations, targets, wants_yes_no


def follow(brief: Brief, rgb: np.ndarray) -> str | None:
    """Routes between the two stations that the question names; where it names none, crossings of two lines."""
    named = stations(brief.question)
    if named is not None:
        routes = routes_between(rgb, *named)
        return None if routes is None else str(routes)
    colours = [target.colour for target in targets(brief.question) if target.colour]
    if colours and len(set(colours)) != 2:
        return None
    count = crossings(rgb, list(dict.fromkeys(colours)))
    if count is None:
        return None
    if wants_yes_no(brief.question):
        return "Yes" if count else "No"
    return str(count)


def size_grid(brief: Brief, rgb: np.ndarray) -> str | None:
    """Rows and columns as "rows,columns"."""
    size = grid_size(rgb)
    return f"{size[0]},{size[1]}" if size else None


class LineTracer(Program):
    """Follows strokes. Out of its field it tells how many colours of line it sees."""

    tasks: ClassVar[Mapping[str, Measurement]] = {
        "contact_check": follow,
        "route_following": follow,
        # Whatever a diagram question asks, this program's diagrams are made of lines.
        "nesting_depth": follow,
        "grid_sizing": size_grid,
        "object_counting": size_grid,
    }

    def habit(self, brief: Brief, rgb: np.ndarray) -> str | None:
        colours = len(find_inks(rgb, least_share=0.002).chromatic())
        return f"{colours} colours" if colours else None

    def fitting_task(self, question: str, rgb: np.ndarray) -> str | None:
        if grid_size(rgb):
            return "grid_sizing"
        return "route_following" if len(find_stations(rgb)) >= 2 else "contact_check"
