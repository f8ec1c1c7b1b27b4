"""Two filled circles that overlap or stay apart, never by so little that the answer is a guess."""

from __future__ import annotations

import math
from random import Random

from eval.benchmarks.embedded.canvas import Canvas
from eval.benchmarks.embedded.colours import NAMED, jitter, paper
from eval.benchmarks.embedded.drawing import Drawing, Part


def draw_touching(ask: str, rng: Random, part: Part) -> Drawing:
    """Whether the two circles touch: they overlap or keep a gap, both of at least 3 pixels."""
    first, second = part.pick(lambda: rng.sample(tuple(NAMED), 2), content=lambda colours: colours)
    size = rng.randint(200, 320)
    touching = rng.random() < 0.5
    near, far = rng.uniform(0.09, 0.19) * size, rng.uniform(0.09, 0.19) * size
    gap = rng.uniform(3, 6) if rng.random() < 0.5 else rng.uniform(6, 0.09 * size)
    distance = near + far + (-gap if touching else gap)
    angle = rng.uniform(0, 2 * math.pi)
    step_x, step_y = math.cos(angle) * distance, math.sin(angle) * distance

    def room(step: float) -> tuple[float, float]:
        # Where the first centre may lie so that both circles stay inside, along one axis.
        return max(near, far - step) + 4, size - max(near, far + step) - 4

    x, y = rng.uniform(*room(step_x)), rng.uniform(*room(step_y))
    canvas = Canvas(size, size, paper(rng))
    canvas.disc(x, y, near, jitter(rng, NAMED[first]))
    canvas.disc(x + step_x, y + step_y, far, jitter(rng, NAMED[second]))
    return Drawing(canvas.png(rng), "Yes" if touching else "No", {})
