"""Right triangles with two sides given and the third one asked for."""

from __future__ import annotations

import math
from random import Random

from eval.benchmarks.embedded.canvas import Canvas, Point, text_size
from eval.benchmarks.embedded.colours import INKS, dark, paper
from eval.benchmarks.embedded.drawing import Drawing, Part
from eval.benchmarks.embedded.names import draw_name

_TRIPLES = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (20, 21, 29), (7, 24, 25), (12, 35, 37))
_FACES = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf")


def draw_right(ask: str, rng: Random, part: Part) -> Drawing:
    """The length of the unlabelled side; it bears a made-up name ("name") or a letter ("letter").

    Sides are multiples of Pythagorean triples, halves too, so every answer is exact with at most one decimal.
    """

    def make() -> tuple[float, float, float, int] | None:
        short, long, slant = rng.choice(_TRIPLES)
        factor = rng.randint(1, 24) / 2
        if slant * factor >= 200:
            return None
        legs = [short * factor, long * factor]
        rng.shuffle(legs)
        return legs[0], legs[1], slant * factor, rng.randrange(3)

    *sides, hidden = part.pick(make, content=lambda made: (sorted(made[:3]), made[made[3]]))
    name = draw_name(rng, part, (2,)) if ask == "name" else rng.choice("xyz")
    labels = [name if index == hidden else f"{side:g}" for index, side in enumerate(sides)]
    return Drawing(_paint(rng, part, sides, labels), f"{sides[hidden]:g}", {"name": name})


def _paint(rng: Random, part: Part, sides: list[float], labels: list[str]) -> bytes:
    width, height = rng.randint(250, 320), rng.randint(220, 300)
    face, size = rng.choice(_FACES), rng.choice((15, 16, 18))
    # A long thin triangle leaves no room for its labels: it is drawn stouter than its numbers say.
    ratio = min(max(sides[0] / sides[1], 0.6), 1.65)
    turn = rng.choice((0, 0, 90, 180, 270, rng.uniform(0, 360)))
    extents = [text_size(label, face, size) for label in labels]

    def make() -> list[Point] | None:
        scale = rng.uniform(120, 220)
        flat = [(0.0, 0.0), (scale * min(ratio, 1), 0.0), (0.0, scale * min(1 / ratio, 1))]
        sine, cosine = math.sin(math.radians(turn)), math.cos(math.radians(turn))
        corners = [(x * cosine - y * sine, x * sine + y * cosine) for x, y in flat]
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        corners = [(x + a, y + b) for a, b in corners]
        for (a, b), (wide, tall) in zip(_places(corners, extents), extents, strict=True):
            if not (wide / 2 + 4 < a < width - wide / 2 - 4 and tall / 2 + 4 < b < height - tall / 2 - 4):
                return None
        return corners if all(5 < a < width - 5 and 5 < b < height - 5 for a, b in corners) else None

    corners = part.pick(make)
    canvas = Canvas(width, height, paper(rng))
    ink, stroke = rng.choice((dark(rng), dark(rng), rng.choice(INKS[:3]))), rng.choice((1.5, 2, 2.5))
    canvas.line(corners, ink, stroke, closed=True)
    right = corners[0]
    one, two = (_towards(right, corner, 11) for corner in corners[1:])
    canvas.line([one, (one[0] + two[0] - right[0], one[1] + two[1] - right[1]), two], ink, 1)
    text = dark(rng)
    for (x, y), label in zip(_places(corners, extents), labels, strict=True):
        canvas.text(x, y, label, text, face, size)
    return canvas.png(rng)


def _places(corners: list[Point], extents: list[tuple[float, float]]) -> list[Point]:
    """Centres of the labels of both legs and the slant: outside the triangle, 7 pixels clear of the side."""
    centre = sum(x for x, _ in corners) / 3, sum(y for _, y in corners) / 3
    places = []
    for (i, j), (wide, tall) in zip(((0, 1), (0, 2), (1, 2)), extents, strict=True):
        (ax, ay), (bx, by) = corners[i], corners[j]
        x, y = (ax + bx) / 2, (ay + by) / 2
        length = math.hypot(bx - ax, by - ay)
        nx, ny = -(by - ay) / length, (bx - ax) / length
        if nx * (x - centre[0]) + ny * (y - centre[1]) < 0:
            nx, ny = -nx, -ny
        away = 7 + abs(nx) * wide / 2 + abs(ny) * tall / 2
        places.append((x + nx * away, y + ny * away))
    return places


def _towards(start: Point, end: Point, distance: float) -> Point:
    share = distance / math.hypot(end[0] - start[0], end[1] - start[1])
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share
