"""Two broken lines that run from left to right and cross some number of times."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from eval.benchmarks.embedded.canvas import Canvas
from eval.benchmarks.embedded.colours import NAMED, jitter, paper
from eval.benchmarks.embedded.drawing import Drawing, Part

_PAIRS = (("blue", "red"), ("red", "green"), ("blue", "orange"), ("green", "purple"))
_LEVELS = 13


def draw_crossings(ask: str, rng: Random, part: Part) -> Drawing:
    """How often two lines cross ("count", 0 to 3), or whether they do ("touch").

    At every corner the lines keep at least two of thirteen levels apart: crossings lie well inside a segment.
    """
    knots = 3 if rng.random() < 0.7 else 4
    # Half of the pairs do not touch, however many crossings the others may have.
    apart = ask == "touch" and rng.random() < 0.5
    target = 0 if apart else rng.randrange(1 if ask == "touch" else 0, knots)

    def make() -> tuple[list[int], list[int]] | None:
        one, two = ([rng.randrange(_LEVELS) for _ in range(knots)] for _ in range(2))
        gaps = [a - b for a, b in zip(one, two, strict=True)]
        if min(map(abs, gaps)) < 2 or _crossings(gaps) != target:
            return None
        return one, two

    one, two = part.pick(make, content=lambda made: made)
    width, height = rng.randint(200, 320), rng.randint(200, 300)
    first, second = rng.choice(_PAIRS) if rng.random() < 0.6 else _PAIRS[0]
    canvas = Canvas(width, height, paper(rng))
    left, right, top, bottom = 14, width - 14, 16, height - 16
    if rng.random() < 0.3:
        for level in range(5):
            y = top + (bottom - top) * level / 4
            canvas.line([(left, y), (right, y)], (222, 222, 222), 1)
    stroke = rng.choice((2, 2.5, 3))
    for levels, colour in ((one, first), (two, second)):
        points = [
            (left + (right - left) * k / (knots - 1), top + (bottom - top) * level / (_LEVELS - 1))
            for k, level in enumerate(levels)
        ]
        canvas.line(points, jitter(rng, NAMED[colour]), stroke)
    answer = str(target) if ask == "count" else ("Yes" if target else "No")
    return Drawing(canvas.png(rng), answer, {"one": first, "two": second})


def _crossings(gaps: list[int]) -> int:
    """Sign changes of the height difference from corner to corner: each is one crossing."""
    return sum(a * b < 0 for a, b in pairwise(gaps))
