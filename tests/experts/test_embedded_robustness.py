"""The embedded experts answer any prompt on any pixels, in words, without raising."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experts.embedded.brief import read_brief
from experts.embedded.chart_reader import ChartReader
from experts.embedded.contour_analyst import ContourAnalyst
from experts.embedded.geometer import Geometer
from experts.embedded.line_tracer import LineTracer
from experts.embedded.program import Program
from experts.embedded.shape_spotter import ShapeSpotter

PROGRAMS: tuple[type[Program], ...] = (ChartReader, ContourAnalyst, LineTracer, ShapeSpotter, Geometer)
TASKS = sorted(
    {task for program in PROGRAMS for task in program.tasks} | {"classify", "nobody_knows_this", ""}
)
QUESTIONS = (
    "How many paths go from A to B?",
    "Is the red circle left of the blue square?",
    "What is the value of Kalomi?",
    "Which one is the largest?",
    "Do they touch each other?",
    "",
)


@dataclass(frozen=True)
class Pixels:
    """A stand-in for a picture."""

    pixels: np.ndarray

    def rgb(self) -> np.ndarray:
        return self.pixels


@st.composite
def pictures(draw: st.DrawFn) -> np.ndarray:
    """Noise, flat colour, random blocks or random strokes, 1 to 60 pixels a side."""
    height, width = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    style = draw(st.sampled_from(("noise", "flat", "blocks", "binary")))
    if style == "noise":
        return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    if style == "binary":
        return np.where(rng.random((height, width, 1)) < 0.5, 0, 255).astype(np.uint8).repeat(3, axis=2)
    picture = np.full((height, width, 3), rng.integers(0, 256, 3), np.uint8)
    for _ in range(0 if style == "flat" else 8):
        top, left = rng.integers(0, height), rng.integers(0, width)
        picture[top : top + rng.integers(1, 30), left : left + rng.integers(1, 30)] = rng.integers(0, 256, 3)
    return picture


BOXES = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.sampled_from(("Kalomi", "12", "0", "5", "10", "x", "Ka lo", "-3", "")),
            "box": st.lists(st.floats(-100, 200), min_size=4, max_size=4),
        }
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(picture=pictures(), task=st.sampled_from(TASKS), question=st.sampled_from(QUESTIONS), boxes=BOXES)
def test_measurements_do_not_fail_inside(
    picture: np.ndarray, task: str, question: str, boxes: list[dict[str, object]]
) -> None:
    prompt = f"Task: {task}\nOCR: {json.dumps(boxes)}\nQuestion: {question}"
    faults: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: faults.append(record.getMessage())
    logger = logging.getLogger("experts.embedded.program")
    logger.addHandler(handler)
    try:
        replies = [program().answer(prompt, [Pixels(picture)]) for program in PROGRAMS]
        # Behind the check of the question, which many of these do not pass.
        for program in PROGRAMS:
            program().measure(read_brief(prompt), picture)
    finally:
        logger.removeHandler(handler)
    assert all(0 < len(reply) < 60 for reply in replies)
    assert faults == []


@settings(max_examples=60, deadline=None)
@given(prompt=st.text(max_size=200))
def test_any_prompt_is_answered(prompt: str) -> None:
    picture = Pixels(np.full((40, 40, 3), 255, np.uint8))
    assert all(program().answer(prompt, [picture]) for program in PROGRAMS)


def test_a_picture_that_cannot_be_read_is_unclear() -> None:
    class Broken:
        def rgb(self) -> np.ndarray:
            raise OSError("gone")

    assert all(
        program().answer("Task: contact_check\nQuestion: q", [Broken()]) == "unclear" for program in PROGRAMS
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_noise_of_full_size_takes_no_long_time(program: type[Program]) -> None:
    picture = Pixels(np.random.default_rng(7).integers(0, 256, (320, 320, 3), dtype=np.uint8))
    started = time.process_time()
    for task in (*program.tasks, "nobody_knows_this"):
        program().measure(read_brief(f"Task: {task}\nQuestion: How many go from A to B?"), picture.pixels)
    assert time.process_time() - started < 5
