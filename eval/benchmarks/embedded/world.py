"""The embedded benchmark: an endless, seeded supply of image questions in twelve families.

Row number `i` of a split depends on (seed, split, i) alone: not on how many rows are asked for, nor on the
process.
Every block of twelve rows holds each family once, in an order of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from eval.benchmarks.embedded import (
    charts,
    circles,
    grids,
    lines,
    rings,
    shapes,
    squares,
    subway,
    triangles,
    wordings,
)
from eval.benchmarks.embedded.drawing import SPLITS, Painter, Part
from eval.benchmarks.row import Row


@dataclass(frozen=True)
class Family:
    """A kind of question: who draws it, and plain sentences that say what kind of picture it is."""

    draw: Painter
    captions: tuple[str, ...]


_CHART = ("a bar chart", "a chart with bars", "a picture of a bar chart")
_SHAPES = ("some coloured shapes", "a picture of coloured shapes", "several filled shapes")

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "bar_value": Family(charts.draw_value, _CHART),
        "bar_extreme": Family(charts.draw_extreme, _CHART),
        "shape_count": Family(shapes.draw_count, _SHAPES),
        "shape_colour": Family(shapes.draw_colour, _SHAPES),
        "relative_position": Family(shapes.draw_position, _SHAPES),
        "touching_circles": Family(circles.draw_touching, ("two filled circles", "a picture of two circles")),
        "olympic_rings": Family(rings.draw_rings, ("a chain of rings", "linked outlines", "a picture of linked rings")),
        "nested_squares": Family(squares.draw_nested, ("nested squares", "squares in squares")),
        "line_crossings": Family(lines.draw_crossings, ("two thin lines", "a picture of two lines")),
        "subway_routes": Family(subway.draw_routes, ("a subway map", "a map of coloured paths")),
        "grid_size": Family(grids.draw_grid, ("a table", "a grid of cells", "a ruled grid")),
        "right_triangle": Family(triangles.draw_right, ("a right triangle", "a triangle with two labelled sides")),
    }
)


def generate(split: str, n: int, seed: int) -> Iterator[Row]:
    """The first `n` rows of a split ("train", "validation", "test", "test_unseen").

    "test" has new pictures, names and values under the wordings of training; "test_unseen" has wordings that
    training never uses. Raises ValueError for another split.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: one of {', '.join(SPLITS)}")
    return (make_row(split, index, seed) for index in range(n))


def make_row(split: str, index: int, seed: int) -> Row:
    """Row number `index` of the split."""
    # A text seed goes through SHA-512, so it is the same in every process.
    rng = Random(f"embedded world, seed {seed}, {split} row {index}")
    name = _family(split, index, seed)
    family = FAMILIES[name]
    wording = wordings.choose(rng, name, seen=split != "test_unseen")
    drawing = family.draw(wording.asks[name], rng, Part(split))
    return Row(
        id=f"embedded-{split}-{seed}-{index:06d}",
        benchmark="embedded",
        question=wording.text.format_map(drawing.words),
        pictures=(drawing.png,),
        answer=drawing.answer,
        group=name,
        split=split,
        extra={"wording": wording.id, "shared": wording.shared, "caption": rng.choice(family.captions)},
    )


def _family(split: str, index: int, seed: int) -> str:
    block, place = divmod(index, len(FAMILIES))
    order = sorted(FAMILIES)
    Random(f"embedded world, seed {seed}, {split} block {block}").shuffle(order)
    return order[place]
