"""Ruled tables, empty or with a short word in each cell."""

from __future__ import annotations

from random import Random

from eval.benchmarks.embedded.canvas import Canvas
from eval.benchmarks.embedded.colours import dark, paper
from eval.benchmarks.embedded.drawing import Drawing, Part
from eval.benchmarks.embedded.names import SYLLABLES


def draw_grid(ask: str, rng: Random, part: Part) -> Drawing:
    """The number of rows and columns as "rows,columns", 2 to 9 each."""

    def make() -> tuple[int, int, int, int]:
        return rng.randint(2, 9), rng.randint(2, 9), rng.randint(200, 320), rng.randint(200, 320)

    rows, columns, width, height = part.pick(make, content=lambda made: made)
    canvas = Canvas(width, height, paper(rng))
    ink, stroke = dark(rng), rng.choice((1, 1.5, 2))
    left, top = rng.uniform(4, 0.14 * width), rng.uniform(4, 0.14 * height)
    right, bottom = width - rng.uniform(4, 0.14 * width), height - rng.uniform(4, 0.14 * height)
    for row in range(rows + 1):
        y = top + (bottom - top) * row / rows
        canvas.line([(left - stroke / 2, y), (right + stroke / 2, y)], ink, stroke)
    for column in range(columns + 1):
        x = left + (right - left) * column / columns
        canvas.line([(x, top), (x, bottom)], ink, stroke)
    if rng.random() < 0.5 and (right - left) / columns >= 24:
        for row in range(rows):
            for column in range(columns):
                x = left + (right - left) * (column + 0.5) / columns
                y = top + (bottom - top) * (row + 0.5) / rows
                canvas.text(x, y, rng.choice(SYLLABLES), ink, "DejaVuSans.ttf", 11)
    return Drawing(canvas.png(rng), f"{rows},{columns}", {})
