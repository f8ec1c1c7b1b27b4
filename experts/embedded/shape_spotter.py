"""Shape-Spotter: filled coloured shapes, how many, of which colour, where, and whether two discs touch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from experts.embedded.brief import Brief
from experts.embedded.discs import discs_touch
from experts.embedded.program import Measurement, Program
from experts.embedded.shapes import Shape, find_shapes
from experts.embedded.words import Target, direction, extreme, targets


def count(brief: Brief, rgb: np.ndarray) -> str | None:
    """How many shapes fit the first colour and kind that the question names; all where it names none."""
    shapes = _shapes(brief, rgb)
    wanted = next(iter(targets(brief.question)), Target(None, None))
    return str(len(_matching(shapes, wanted))) if shapes else None


def name_colour(brief: Brief, rgb: np.ndarray) -> str | None:
    """The colour of the largest (or smallest) of the shapes of the named kind."""
    wanted = next((target for target in targets(brief.question) if target.kind), Target(None, None))
    found = _matching(_shapes(brief, rgb), Target(None, wanted.kind))
    if not found:
        return None
    return (min if extreme(brief.question) == "least" else max)(found, key=lambda shape: shape.area).colour


def judge_position(brief: Brief, rgb: np.ndarray) -> str | None:
    """Whether the first named shape lies left of, right of, above or below the second."""
    named, way = targets(brief.question), direction(brief.question)
    if len(named) < 2 or way is None:
        return name_colour(brief, rgb)
    shapes = _shapes(brief, rgb)
    one, two = (max(_matching(shapes, target), key=lambda shape: shape.area, default=None) for target in named[:2])
    if one is None or two is None or one is two:
        return None
    (x1, y1), (x2, y2) = one.centre, two.centre
    holds = {"left": x1 < x2, "right": x1 > x2, "above": y1 < y2, "below": y1 > y2}[way]
    return "Yes" if holds else "No"


def check_contact(brief: Brief, rgb: np.ndarray) -> str | None:
    """Whether the two largest discs touch."""
    touching = discs_touch(rgb)
    return None if touching is None else "Yes" if touching else "No"


def _shapes(brief: Brief, rgb: np.ndarray) -> list[Shape]:
    """The shapes given as evidence, else those seen in the picture."""
    if brief.shapes is not None:
        return [Shape.from_record(record) for record in brief.shapes]
    return find_shapes(rgb)


def _matching(shapes: list[Shape], wanted: Target) -> list[Shape]:
    return [shape for shape in shapes if wanted.colour in (None, shape.colour) and wanted.kind in (None, shape.kind)]


class ShapeSpotter(Program):
    """Finds filled shapes. Out of its field it names the kind of the largest one."""

    tasks: ClassVar[Mapping[str, Measurement]] = {
        "object_counting": count,
        "colour_naming": name_colour,
        "position_judging": judge_position,
        "contact_check": check_contact,
        # Whatever a diagram question asks, this program's diagrams are two discs.
        "nesting_depth": check_contact,
        "route_following": check_contact,
    }

    def habit(self, brief: Brief, rgb: np.ndarray) -> str | None:
        return next((shape.kind for shape in find_shapes(rgb)), None)

    def fitting_task(self, question: str, rgb: np.ndarray) -> str | None:
        if direction(question) and len(targets(question)) >= 2:
            return "position_judging"
        touching = discs_touch(rgb) is not None
        return "contact_check" if touching else "object_counting"
