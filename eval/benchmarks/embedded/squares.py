"""Squares drawn inside one another, outlines only, none touching the next."""

from __future__ import annotations

import math
from random import Random

from eval.benchmarks.embedded.canvas import Canvas
from eval.benchmarks.embedded.colours import INKS, dark, jitter, paper
from eval.benchmarks.embedded.drawing import Drawing, Part


def draw_nested(ask: str, rng: Random, part: Part) -> Drawing:
    """The number of nested squares, 2 to 7; at least 5 pixels lie between two outlines."""
    count = rng.randint(2, 7)
    stroke = rng.choice((2, 2.5, 3))
    size = part.pick(lambda: rng.randint(200, 320), content=lambda size: (size, count, stroke))
    turn = 0.0 if rng.random() < 0.7 else rng.uniform(-0.25, 0.25)

    def make() -> list[tuple[float, float, float]] | None:
        side = rng.uniform(0.55, 0.86) * size
        # Room that the turned outer square needs on either side of its centre.
        reach = side / 2 * (math.cos(turn) + abs(math.sin(turn))) + 5
        if reach > size / 2:
            return None
        x, y = rng.uniform(reach, size - reach), rng.uniform(reach, size - reach)
        squares = [(x, y, side)]
        for _ in range(count - 1):
            inner = side * rng.uniform(0.6, 0.86)
            slack = (side - inner) / 2 - 5 - stroke
            if slack < 0 or inner < 16:
                return None
            x, y, side = x + rng.uniform(-slack, slack), y + rng.uniform(-slack, slack), inner
            squares.append((x, y, side))
        return squares

    squares = part.pick(make)
    canvas = Canvas(size, size, paper(rng))
    single = jitter(rng, rng.choice((dark(rng), rng.choice(INKS))))
    many = rng.random() < 0.3
    pivot_x, pivot_y, _ = squares[0]
    for x, y, side in squares:
        corners = []
        for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
            u, v = x + a * side / 2 - pivot_x, y + b * side / 2 - pivot_y
            corners.append(
                (
                    pivot_x + u * math.cos(turn) - v * math.sin(turn),
                    pivot_y + u * math.sin(turn) + v * math.cos(turn),
                )
            )
        canvas.line(corners, jitter(rng, rng.choice(INKS)) if many else single, stroke, closed=True)
    return Drawing(canvas.png(rng), str(len(squares)), {})
