"""Scenes of filled coloured shapes that do not overlap: how many, which colour, where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from eval.benchmarks.embedded.canvas import Canvas, Point
from eval.benchmarks.embedded.colours import NAMED, jitter, paper
from eval.benchmarks.embedded.drawing import Drawing, Part

KINDS = ("circle", "square", "triangle", "star")
COLOURS = tuple(NAMED)
DIRECTIONS = ("left of", "right of", "above", "below")

Look = tuple[str, str]
"""Colour name and kind."""


@dataclass(frozen=True)
class Shape:
    colour: str
    kind: str
    x: float
    y: float
    radius: float


def draw_count(ask: str, rng: Random, part: Part) -> Drawing:
    """How many shapes: "total", of one "colour", "kind" ("kind:circle": a given one) or "both"."""
    aspect, _, given = ask.partition(":")
    colour, kind = rng.choice(COLOURS), given or rng.choice(KINDS)
    want = colour if aspect in ("colour", "both") else None, kind if aspect in ("kind", "both") else None

    def asked(look: Look) -> bool:
        return (want[0] or look[0], want[1] or look[1]) == look

    def make() -> list[Look]:
        total = rng.randint(3, 10)
        hits = total if aspect == "total" else rng.randint(1, min(7, total))
        looks: list[Look] = []
        while len(looks) < total:
            look = rng.choice(COLOURS), rng.choice(KINDS)
            if len(looks) < hits:
                looks.append((want[0] or look[0], want[1] or look[1]))
            elif not asked(look):
                looks.append(look)
        return looks

    looks = part.pick(make, content=sorted)
    size = rng.randint(200, 320)
    shapes = _place(rng, size, looks, [rng.uniform(0.06, 0.1) for _ in looks])
    return Drawing(_paint(rng, size, shapes), str(sum(map(asked, looks))), {"kind": kind, "colour": colour})


def draw_colour(ask: str, rng: Random, part: Part) -> Drawing:
    """The colour of the "largest" or "smallest" shape, or of the only one of its "kind"."""
    kind = rng.choice(KINDS)

    def make() -> list[Look]:
        others = [(rng.choice(COLOURS), rng.choice([k for k in KINDS if k != kind])) for _ in range(rng.randint(2, 6))]
        return [(rng.choice(COLOURS), kind), *others]

    looks = part.pick(make, content=sorted)
    size = rng.randint(200, 320)
    # The asked one is first in the list. One shape is clearly the largest and one clearly the smallest, by
    # extent and, whatever their kinds, by area.
    radii = [rng.uniform(0.075, 0.095) for _ in looks]
    order = list(range(len(looks)))
    rng.shuffle(order)
    if ask in ("largest", "smallest"):
        order.remove(0)
        order.insert(0 if ask == "largest" else len(order), 0)
    radii[order[0]], radii[order[-1]] = rng.uniform(0.17, 0.2), rng.uniform(0.04, 0.045)
    shapes = _place(rng, size, looks, radii)
    return Drawing(_paint(rng, size, shapes), looks[0][0], {"kind": kind})


def draw_position(ask: str, rng: Random, part: Part) -> Drawing:
    """Whether one shape lies left of, right of, above or below another; no third one looks like either."""

    def make() -> list[Look] | None:
        looks = [(rng.choice(COLOURS), rng.choice(KINDS)) for _ in range(rng.randint(2, 6))]
        return looks if looks.count(looks[0]) == 1 == looks.count(looks[1]) else None

    looks = part.pick(make, content=lambda looks: (looks[:2], sorted(looks[2:])))
    size = rng.randint(200, 320)
    way, yes = rng.choice(DIRECTIONS), rng.random() < 0.5

    def place() -> list[Shape] | None:
        shapes = _place(rng, size, looks, [rng.uniform(0.07, 0.12) for _ in looks])
        one, two = shapes[:2]
        ahead = {
            "left of": two.x - one.x,
            "right of": one.x - two.x,
            "above": two.y - one.y,
            "below": one.y - two.y,
        }[way]
        return shapes if (ahead > 0) == yes and abs(ahead) >= 0.1 * size else None

    shapes = part.pick(place)
    words = {"one": " ".join(looks[0]), "two": " ".join(looks[1]), "way": way}
    return Drawing(_paint(rng, size, shapes), "Yes" if yes else "No", words)


def _place(rng: Random, size: int, looks: Sequence[Look], radii: Sequence[float]) -> list[Shape]:
    """Shapes in the order of `looks`, at random free places; radii are shares of the side."""
    order = sorted(range(len(looks)), key=lambda index: -radii[index])
    while True:
        placed: dict[int, Shape] = {}
        for index in order:
            radius = radii[index] * size
            for _ in range(60):
                x, y = (rng.uniform(radius * 1.15 + 2, size - radius * 1.15 - 2) for _ in range(2))
                if all(math.hypot(x - s.x, y - s.y) > 1.12 * (radius + s.radius) + 4 for s in placed.values()):
                    placed[index] = Shape(looks[index][0], looks[index][1], x, y, radius)
                    break
            else:
                break
        if len(placed) == len(looks):
            return [placed[index] for index in range(len(looks))]


def _paint(rng: Random, size: int, shapes: Sequence[Shape]) -> bytes:
    canvas = Canvas(size, size, paper(rng))
    for _ in range(rng.choice((0, 0, 6, 12))):
        # Clutter: thin pale strokes that no shape could be taken for.
        x, y = rng.uniform(0, size), rng.uniform(0, size)
        shade = rng.randint(175, 215)
        end = x + rng.uniform(-0.25, 0.25) * size, y + rng.uniform(-0.25, 0.25) * size
        canvas.line([(x, y), end], (shade, shade, shade), 1)
    for shape in shapes:
        colour = jitter(rng, NAMED[shape.colour])
        if shape.kind == "circle":
            canvas.disc(shape.x, shape.y, shape.radius, colour)
        else:
            canvas.polygon(_corners(shape, rng.uniform(0, 2 * math.pi)), colour)
    return canvas.png(rng)


def _corners(shape: Shape, turn: float) -> list[Point]:
    if shape.kind == "square":
        spokes = [(turn + k * math.pi / 2, 1.1) for k in range(4)]
    elif shape.kind == "triangle":
        spokes = [(turn + k * math.pi * 2 / 3, 1.15) for k in range(3)]
    else:
        spokes = [(turn + k * math.pi / 5, 0.5 if k % 2 else 1.15) for k in range(10)]
    return [
        (shape.x + reach * shape.radius * math.cos(angle), shape.y + reach * shape.radius * math.sin(angle))
        for angle, reach in spokes
    ]
