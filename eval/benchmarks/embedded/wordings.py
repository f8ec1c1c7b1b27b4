"""How questions are put: several wordings a family, some of them shared by families whose pictures differ.

The one idea: under a shared wording the text does not tell who should be asked, so the picture decides.
An `ask` is what a wording wants of its family's painter (see the painters' docstrings); the drawing fills in
the `{words}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

SHARED_SHARE = 0.45
"""Share of the rows of a family with shared wordings that use one of them."""


@dataclass(frozen=True)
class Wording:
    """One way to put a question; `asks`: what each family that uses it draws; `seen`: used in training."""

    id: str
    text: str
    asks: Mapping[str, str]
    seen: bool = True

    @property
    def shared(self) -> bool:
        return len(self.asks) > 1


# family -> ask, wording; the last two of each family are never used in training.
_UNIQUE: dict[str, tuple[tuple[str, str], ...]] = {
    "bar_value": (
        ("value", "What is the value of the bar {name}?"),
        ("value", "How high is the bar {name}?"),
        ("value", "What value does the chart show for {name}?"),
        ("value", "Read the value of {name} in the chart."),
        ("value", "Which value does the bar {name} have?"),
        ("value", "What is the value of {name} in the chart?"),
    ),
    "bar_extreme": (
        ("max", "Which bar is the highest?"),
        ("min", "Which bar is the lowest?"),
        ("max", "Which bar has the highest value?"),
        ("min", "Name the bar with the lowest value."),
        ("max", "Name the highest bar in the chart."),
        ("min", "Which bar in the chart has the lowest value?"),
    ),
    "shape_count": (
        ("colour", "How many {colour} shapes are there?"),
        ("both", "How many {colour} {kind}s are there?"),
        ("colour", "Count the {colour} shapes."),
        ("kind", "How many {kind}s of any colour are there?"),
        ("both", "Count the {colour} {kind}s in the picture."),
        ("colour", "How many shapes are {colour}?"),
    ),
    "shape_colour": (
        ("kind", "What colour is the {kind}?"),
        ("largest", "What is the colour of the largest shape?"),
        ("smallest", "What colour is the smallest shape?"),
        ("kind", "Which colour does the {kind} have?"),
        ("kind", "What is the colour of the {kind}?"),
        ("largest", "Which colour does the largest shape have?"),
    ),
    "relative_position": (
        ("way", "Is the {one} {way} the {two}?"),
        ("way", "Does the {one} lie {way} the {two}?"),
        ("way", "Is there a {one} {way} the {two}?"),
        ("way", "Can you see the {one} {way} the {two}?"),
        ("way", "Does a {one} lie {way} the {two}?"),
        ("way", "Can you see a {one} {way} the {two}?"),
    ),
    "touching_circles": (
        ("touch", "Are the two circles touching each other?"),
        ("touch", "Do the two circles touch?"),
        ("touch", "Do the two circles overlap?"),
        ("touch", "Is the one circle touching the other circle?"),
        ("touch", "Are the circles touching?"),
        ("touch", "Do the circles overlap each other?"),
    ),
    "olympic_rings": (
        ("circles", "How many rings are there?"),
        ("pentagons", "How many pentagons are there?"),
        ("circles", "Count the rings in the picture."),
        ("pentagons", "Count the pentagons."),
        ("circles", "How many rings can you see?"),
        ("pentagons", "How many pentagons are in the picture?"),
    ),
    "nested_squares": (
        ("any", "Count the total number of squares in the picture."),
        ("any", "How many nested squares are there?"),
        ("any", "How many squares lie in each other?"),
        ("any", "Count the nested squares."),
        ("any", "How many nested squares can you see?"),
        ("any", "Count the squares that lie in each other."),
    ),
    "line_crossings": (
        ("count", "How many times do the {one} and {two} lines touch each other?"),
        ("count", "How many times do the two lines cross?"),
        ("count", "Count the times that the lines cross each other."),
        ("count", "How many times does the {one} line cross the {two} line?"),
        ("count", "How many times do the lines touch?"),
        ("count", "Count the times that the {one} and {two} lines cross."),
    ),
    "subway_routes": (
        ("routes", "How many single-colored paths go from {one} to {two}?"),
        ("routes", "How many paths go from {one} to {two}?"),
        ("routes", "Count the paths from {one} to {two}."),
        ("routes", "How many lines go from {one} to {two}?"),
        ("routes", "Count the lines that go from {one} to {two}."),
        ("routes", "How many paths are there from {one} to {two}?"),
    ),
    "grid_size": (
        ("size", "Count the number of rows and columns."),
        ("size", "How many rows and columns are there?"),
        ("size", "How many rows and columns does the table have?"),
        ("size", "Count the rows and columns of the table."),
        ("size", "What is the number of rows and columns?"),
        ("size", "How many rows and columns are in the picture?"),
    ),
    "right_triangle": (
        ("letter", "How long is the side {name}?"),
        ("name", "How long is the side {name} of the triangle?"),
        ("letter", "What is the length of {name} in the triangle?"),
        ("name", "What is the length of the side {name}?"),
        ("letter", "What is the length of the side {name} of the triangle?"),
        ("name", "How long is {name} in the triangle?"),
    ),
}

_COUNTED = {"shape_count": "total", "nested_squares": "any", "olympic_rings": "any"}
_TOUCH = {"touching_circles": "touch", "line_crossings": "touch"}
_VALUE = {"bar_value": "value", "right_triangle": "name"}
_LARGEST = {"bar_extreme": "max", "shape_colour": "largest"}
_SMALLEST = {"bar_extreme": "min", "shape_colour": "smallest"}
_SQUARES = {"shape_count": "kind:square", "nested_squares": "any"}
_CIRCLES = {"shape_count": "kind:circle", "olympic_rings": "circles"}

_SHARED = (
    Wording("shapes_1", "How many shapes are in the picture?", _COUNTED),
    Wording("shapes_2", "Count the shapes.", _COUNTED),
    Wording("squares_1", "How many squares are there?", _SQUARES),
    Wording("circles_1", "How many circles are there?", _CIRCLES),
    Wording("largest_1", "Which one is the largest?", _LARGEST),
    Wording("largest_2", "Name the largest one.", _LARGEST),
    Wording("smallest_1", "Which one is the smallest?", _SMALLEST),
    Wording("touch_1", "Do they touch each other?", _TOUCH),
    Wording("touch_2", "Are they touching?", _TOUCH),
    Wording("value_1", "What is the value of {name}?", _VALUE),
    Wording("value_2", "Find the value of {name}.", _VALUE),
    Wording("shapes_3", "How many shapes can you see?", _COUNTED, seen=False),
    Wording("squares_2", "Count the squares.", _SQUARES, seen=False),
    Wording("circles_2", "Count the circles.", _CIRCLES, seen=False),
    Wording("smallest_2", "Name the smallest one.", _SMALLEST, seen=False),
    Wording("touch_3", "Do they touch?", _TOUCH, seen=False),
    Wording("value_3", "What value does {name} have?", _VALUE, seen=False),
)

WORDINGS: tuple[Wording, ...] = (
    *(
        Wording(f"{family}_{number}", text, {family: ask}, seen=number <= len(table) - 2)
        for family, table in _UNIQUE.items()
        for number, (ask, text) in enumerate(table, start=1)
    ),
    *_SHARED,
)
FAMILIES: tuple[str, ...] = tuple(_UNIQUE)


def choose(rng: Random, family: str, *, seen: bool) -> Wording:
    """A wording for a row of this family: a shared one with `SHARED_SHARE` where the family has any."""
    mine = [wording for wording in WORDINGS if wording.seen == seen and family in wording.asks]
    shared = [wording for wording in mine if wording.shared]
    alone = [wording for wording in mine if not wording.shared]
    return rng.choice(shared if rng.random() < SHARED_SHARE and shared else alone)
