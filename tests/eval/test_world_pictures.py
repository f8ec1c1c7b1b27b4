"""Answers of the embedded world, checked against the pixels by measures of their own."""

from __future__ import annotations

import io
from itertools import pairwise
from random import Random

import cv2
import numpy as np
import pytest
from PIL import Image

from eval.benchmarks.embedded import charts, circles, grids, lines, rings, shapes, squares, subway
from eval.benchmarks.embedded.canvas import Canvas
from eval.benchmarks.embedded.colours import NAMED
from eval.benchmarks.embedded.drawing import Drawing, Part
from eval.benchmarks.embedded.world import FAMILIES

TRAIN = Part("train")
SEEDS = range(8)


def pixels(drawing: Drawing) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(drawing.png))).astype(int)


def ink(image: np.ndarray) -> np.ndarray:
    """Pixels that differ clearly from the background, which is more than half of the picture."""
    return (np.abs(image - np.median(image, axis=(0, 1))).max(axis=2) > 40).astype(np.uint8)


def vivid(image: np.ndarray) -> np.ndarray:
    return (image.max(axis=2) - image.min(axis=2) > 45).astype(np.uint8)


def pieces(mask: np.ndarray, smallest: int = 20) -> list[np.ndarray]:
    """Connected pieces of a mask, as masks."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=4)
    return [labels == k for k in range(1, count) if stats[k, cv2.CC_STAT_AREA] >= smallest]


def enclosed(mask: np.ndarray) -> int:
    """How many areas the ink closes in."""
    return len(pieces((1 - np.pad(mask, 1)).astype(np.uint8), smallest=4)) - 1


@pytest.mark.parametrize("seed", SEEDS)
def test_as_many_shapes_as_the_answer_says(seed: int) -> None:
    drawing = shapes.draw_count("total", Random(seed), TRAIN)
    assert str(len(pieces(vivid(pixels(drawing))))) == drawing.answer


@pytest.mark.parametrize("ask", ["largest", "smallest"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_largest_or_smallest_area_has_the_colour_of_the_answer(ask: str, seed: int) -> None:
    drawing = shapes.draw_colour(ask, Random(seed), TRAIN)
    image = pixels(drawing)
    found = sorted(pieces(vivid(image)), key=lambda piece: piece.sum(), reverse=ask == "largest")
    areas = [piece.sum() for piece in found[:2]]
    assert max(areas) / min(areas) > 1.2
    middle = np.median(image[found[0]], axis=0)
    assert min(NAMED, key=lambda name: np.abs(middle - NAMED[name]).sum()) == drawing.answer


@pytest.mark.parametrize("seed", SEEDS)
def test_touching_circles_are_one_piece_and_others_two(seed: int) -> None:
    drawing = circles.draw_touching("touch", Random(seed), TRAIN)
    assert len(pieces(ink(pixels(drawing)))) == {"Yes": 1, "No": 2}[drawing.answer]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_nested_square_closes_in_one_more_area(seed: int) -> None:
    drawing = squares.draw_nested("any", Random(seed), TRAIN)
    mask = ink(pixels(drawing))
    assert str(enclosed(mask)) == drawing.answer
    assert str(len(pieces(mask))) == drawing.answer


@pytest.mark.parametrize("ask", ["circles", "pentagons"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_chain_of_rings_is_one_piece_that_closes_in_two_areas_a_ring_less_one(ask: str, seed: int) -> None:
    drawing = rings.draw_rings(ask, Random(seed), TRAIN)
    mask = ink(pixels(drawing))
    assert len(pieces(mask)) == 1
    assert enclosed(mask) == 2 * int(drawing.answer) - 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_grid_has_the_cells_of_the_answer(seed: int) -> None:
    drawing = grids.draw_grid("size", Random(seed), TRAIN)
    mask = ink(pixels(drawing))
    full_rows = mask.mean(axis=1) > 0.6
    full_columns = mask.mean(axis=0) > 0.6
    rows, columns = ((np.diff(full.astype(int)) == 1).sum() - 1 for full in (full_rows, full_columns))
    assert f"{rows},{columns}" == drawing.answer


@pytest.mark.parametrize("seed", SEEDS)
def test_lines_that_never_cross_leave_a_way_between_them(seed: int) -> None:
    drawing = lines.draw_crossings("touch", Random(seed), TRAIN)
    assert len(pieces(vivid(pixels(drawing)), smallest=30)) == {"Yes": 1, "No": 2}[drawing.answer]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_highest_bar_bears_the_name_of_the_answer(seed: int) -> None:
    bars, lying = charts._plan(Random(seed), TRAIN)
    drawing = charts.draw_extreme("max", Random(seed), TRAIN)
    found = [np.argwhere(piece) for piece in pieces(vivid(pixels(drawing)), smallest=150)]
    across, along = (0, 1) if lying else (1, 0)
    found.sort(key=lambda spots: spots[:, across].mean())
    lengths = [np.ptp(spots[:, along]) + 1 for spots in found]
    assert len(lengths) == len(bars.names)
    assert bars.names[int(np.argmax(lengths))] == drawing.answer == bars.highest
    # Bars end where their values say: the scale of the longest fits all, to two pixels.
    scale = max(lengths) / max(bars.values)
    assert all(abs(length - scale * value) < 2 for length, value in zip(lengths, bars.values, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_routes_cross_but_never_share_a_track(seed: int) -> None:
    walks, joined = subway._lay(Random(seed), 5)
    assert len(walks) == len(joined) >= 2
    steps = [frozenset(step) for walk in walks for step in pairwise(walk)]
    assert len(steps) == len(set(steps))
    ends = [end for walk in walks for end in (walk[0], walk[-1])]
    assert len(ends) == len(set(ends))
    for walk, (one, two) in zip(walks, joined, strict=True):
        assert walk[0] in subway._STATIONS[one][1] and walk[-1] in subway._STATIONS[two][1]


def test_crossings_are_changes_of_the_upper_line() -> None:
    assert lines._crossings([3, -2, 4]) == 2
    assert lines._crossings([3, 2, 4]) == 0
    assert lines._crossings([-3, -2, 5, -2]) == 2


@pytest.mark.parametrize(
    ("family", "ask"),
    [("relative_position", "way"), ("touching_circles", "touch"), ("line_crossings", "touch")],
)
def test_half_of_the_yes_or_no_answers_are_yes(
    family: str, ask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without painting, so that the sample is large: 4 standard errors of 2,000 fair draws are 4.5 points.
    for paint in ("line", "polygon", "disc"):
        monkeypatch.setattr(Canvas, paint, lambda *args, **kwargs: None)
    monkeypatch.setattr(Canvas, "png", lambda *args: b"")
    monkeypatch.setattr(Canvas, "__init__", lambda *args: None)
    answers = [FAMILIES[family].draw(ask, Random(f"fair {number}"), TRAIN).answer for number in range(2000)]
    assert 0.455 <= answers.count("Yes") / 2000 <= 0.545
