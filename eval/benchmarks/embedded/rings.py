"""Outlined circles or pentagons linked into a chain, each crossing the next one exactly twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np

from eval.benchmarks.embedded.canvas import Canvas, Point
from eval.benchmarks.embedded.colours import INKS, dark, jitter, paper
from eval.benchmarks.embedded.drawing import Drawing, Part


def draw_rings(ask: str, rng: Random, part: Part) -> Drawing:
    """The number of outlines: "circles", "pentagons" or "any"."""
    sides = {"circles": 0, "pentagons": 5}.get(ask, rng.choice((0, 5)))
    stroke = rng.choice((2, 2.5, 3))
    count = rng.randint(3, 8)

    def make() -> tuple[int, int, float, list[Point]] | None:
        width, height = rng.randint(220, 320), rng.randint(200, 280)
        radius, centres = _two_rows(rng, count, width) if rng.random() < 0.7 else _wave(rng, count, width)
        left, right = min(x for x, _ in centres) - radius, max(x for x, _ in centres) + radius
        top, bottom = min(y for _, y in centres) - radius, max(y for _, y in centres) + radius
        margin = 6
        if right - left > width - 2 * margin or bottom - top > height - 2 * margin:
            return None
        dx = rng.uniform(margin - left, width - margin - right)
        dy = rng.uniform(margin - top, height - margin - bottom)
        moved = [(x + dx, y + dy) for x, y in centres]
        return (width, height, radius, moved) if _clear(moved, radius, sides, stroke) else None

    width, height, radius, centres = part.pick(make, content=lambda made: (count, sides, *made[:2]))
    canvas = Canvas(width, height, paper(rng))
    single = jitter(rng, rng.choice((dark(rng), rng.choice(INKS))))
    many = rng.random() < 0.5
    for x, y in centres:
        colour = jitter(rng, rng.choice(INKS)) if many else single
        if sides:
            canvas.line(_corners(x, y, radius, sides), colour, stroke, closed=True)
        else:
            canvas.ring(x, y, radius, colour, stroke)
    return Drawing(canvas.png(rng), str(len(centres)), {})


def _two_rows(rng: Random, count: int, width: int) -> tuple[float, list[Point]]:
    """The Olympic arrangement: upper and lower rings in turn, neighbours of one row apart."""
    pitch = width * rng.uniform(0.7, 0.94) / (count / 2 + 0.9)
    radius = min(pitch * rng.uniform(0.42, 0.46), 46.0)
    drop = radius * rng.uniform(0.5, 1.15)
    return radius, [(k * pitch / 2, (k % 2) * drop) for k in range(count)]


def _wave(rng: Random, count: int, width: int) -> tuple[float, list[Point]]:
    """A chain along a gentle wave."""
    step = rng.uniform(1.35, 1.65)
    radius = min(width * rng.uniform(0.75, 0.94) / (step * (count - 1) + 2), 46.0)
    swing, phase, pace = rng.uniform(0, 0.9), rng.uniform(0, 6.28), rng.uniform(0.5, 1.2)
    return radius, [(k * step * radius, swing * radius * math.sin(phase + pace * k)) for k in range(count)]


def _corners(x: float, y: float, radius: float, sides: int) -> list[Point]:
    return [
        (x + radius * math.sin(2 * math.pi * k / sides), y - radius * math.cos(2 * math.pi * k / sides))
        for k in range(sides)
    ]


def _clear(centres: Sequence[Point], radius: float, sides: int, stroke: float) -> bool:
    """True when each outline crosses the next with wide pieces between, and keeps off the others."""
    if radius < 14:
        return False
    # How far apart two centres may be so that the shared piece is still wide; polygons are looked at below.
    reach = 2 * radius if sides else 2 * radius - 2 * stroke - 4
    for i, (x, y) in enumerate(centres):
        for j in range(i + 1, len(centres)):
            distance = math.hypot(centres[j][0] - x, centres[j][1] - y)
            if j > i + 1 and distance < 2 * radius + stroke + 3:
                return False
            if j == i + 1 and not (0.9 * radius < distance < reach):
                return False
    return not sides or all(_plain(one, two, radius, sides, stroke) for one, two in pairwise(centres))


def _plain(one: Point, two: Point, radius: float, sides: int, stroke: float) -> bool:
    """True when two polygons share one piece and leave one piece each, none of them a sliver."""
    import cv2

    side = math.ceil(radius * 4) + 8
    middle = (one[0] + two[0]) / 2, (one[1] + two[1]) / 2
    masks: list[np.ndarray] = []
    for x, y in (one, two):
        corners = _corners(x - middle[0] + side / 2, y - middle[1] + side / 2, radius, sides)
        outline = np.rint(corners).astype(np.int32)
        masks.append(cv2.fillPoly(np.zeros((side, side), np.uint8), [outline], (1,)))
    thick = np.ones((math.ceil(stroke) + 3,) * 2, np.uint8)
    first, second = masks
    for piece in (cv2.bitwise_and(first, second), cv2.subtract(first, second), cv2.subtract(second, first)):
        labels, _, stats, _ = cv2.connectedComponentsWithStats(cv2.erode(piece, thick), connectivity=4)
        if labels != 2 or stats[1, cv2.CC_STAT_AREA] < 0.25 * piece.sum():
            return False
    return True
