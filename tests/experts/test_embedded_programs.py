"""Each embedded expert on small pictures drawn here: right in its field, beside the point outside it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest
from PIL import Image, ImageDraw

from experts.embedded.chart_reader import ChartReader
from experts.embedded.contour_analyst import ContourAnalyst
from experts.embedded.geometer import Geometer
from experts.embedded.line_tracer import LineTracer
from experts.embedded.shape_spotter import ShapeSpotter
from experts.images import Picture, load_picture

RED, BLUE, GREEN, BLACK = (220, 30, 30), (40, 80, 220), (40, 160, 60), (0, 0, 0)


class Sketch:
    """A white picture painted at three times its size, so that edges are smooth."""

    def __init__(self, width: int = 240, height: int = 240) -> None:
        self._image = Image.new("RGB", (width * 3, height * 3), "white")
        self._draw = ImageDraw.Draw(self._image)

    def disc(self, x: float, y: float, radius: float, colour: tuple[int, int, int]) -> Sketch:
        self._draw.ellipse([(x - radius) * 3, (y - radius) * 3, (x + radius) * 3, (y + radius) * 3], fill=colour)
        return self

    def ring(self, x: float, y: float, radius: float, colour: tuple[int, int, int] = BLACK) -> Sketch:
        box = [(x - radius) * 3, (y - radius) * 3, (x + radius) * 3, (y + radius) * 3]
        self._draw.ellipse(box, outline=colour, width=6)
        return self

    def block(self, x0: float, y0: float, x1: float, y1: float, colour: tuple[int, int, int]) -> Sketch:
        self._draw.rectangle([x0 * 3, y0 * 3, x1 * 3 - 1, y1 * 3 - 1], fill=colour)
        return self

    def polygon(self, points: Sequence[tuple[float, float]], colour: tuple[int, int, int]) -> Sketch:
        self._draw.polygon([(x * 3, y * 3) for x, y in points], fill=colour)
        return self

    def path(self, *points: tuple[float, float], colour: tuple[int, int, int] = BLACK, width: int = 2) -> Sketch:
        self._draw.line([(x * 3, y * 3) for x, y in points], fill=colour, width=width * 3, joint="curve")
        return self

    def letter(self, x: float, y: float, text: str) -> Sketch:
        from PIL import ImageFont

        self._draw.text((x * 3, y * 3), text, fill=BLACK, anchor="mm", font=ImageFont.load_default(48))
        return self

    def picture(self) -> Picture:
        return load_picture(self._image.reduce(3))


def square(x: float, y: float, side: float) -> list[tuple[float, float]]:
    """Corners of a square, the first one twice."""
    return [(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)]


def texts(*entries: tuple[str, float, float]) -> str:
    """An OCR line: texts of six pixels a letter around their centres."""
    boxes = [
        {"text": text, "score": 0.99, "box": [x - 3 * len(text), y - 5, x + 3 * len(text), y + 5]}
        for text, x, y in entries
    ]
    return "OCR: " + json.dumps(boxes)


def scene() -> Picture:
    """A large red circle at the left, a small blue square at the right, two green circles below."""
    sketch = Sketch().disc(60, 60, 36, RED).block(160, 50, 190, 80, BLUE)
    return sketch.disc(80, 180, 18, GREEN).disc(170, 180, 14, GREEN).picture()


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("How many shapes are in the picture?", "4"),
        ("How many circles are there?", "3"),
        ("Count the green circles.", "2"),
        ("How many squares are there?", "1"),
        ("How many shapes are green?", "2"),
        ("How many stars can you see?", "0"),
    ],
)
def test_spotter_counts_the_shapes_that_the_question_names(question: str, count: str) -> None:
    assert ShapeSpotter().answer(f"Task: object_counting\nQuestion: {question}", [scene()]) == count


@pytest.mark.parametrize(
    ("question", "colour"),
    [
        ("Which one is the largest?", "red"),
        ("What colour is the square?", "blue"),
        ("Name the smallest one.", "green"),
    ],
)
def test_spotter_names_colours(question: str, colour: str) -> None:
    assert ShapeSpotter().answer(f"Task: colour_naming\nQuestion: {question}", [scene()]) == colour


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("Is the red circle left of the blue square?", "Yes"),
        ("Is the blue square left of the red circle?", "No"),
        ("Does the red circle lie above the green circle?", "Yes"),
        ("Can you see a blue square below the green circle?", "No"),
    ],
)
def test_spotter_judges_positions(question: str, verdict: str) -> None:
    assert ShapeSpotter().answer(f"Task: position_judging\nQuestion: {question}", [scene()]) == verdict


def test_spotter_believes_shapes_given_as_evidence() -> None:
    shape = {"kind": "star", "colour": "pink", "box": [0, 0, 9, 9], "centre": [4, 4], "area": 50}
    prompt = f"Task: colour_naming\nShapes: {json.dumps([shape])}\nQuestion: Which one is the largest?"
    assert ShapeSpotter().answer(prompt, [scene()]) == "pink"


def test_spotter_tells_a_star_and_a_triangle() -> None:
    star = [
        (60 + r * math.sin(k * math.pi / 5), 60 - r * math.cos(k * math.pi / 5))
        for k in range(10)
        for r in [40 if k % 2 == 0 else 17]
    ]
    picture = Sketch().polygon(star, RED).polygon([(150, 200), (220, 210), (180, 140)], BLUE).picture()
    asked = "Task: object_counting\nQuestion: How many {} are there?"
    assert ShapeSpotter().answer(asked.format("stars"), [picture]) == "1"
    assert ShapeSpotter().answer(asked.format("triangles"), [picture]) == "1"


@pytest.mark.parametrize(("distance", "verdict"), [(73, "No"), (67, "Yes"), (40, "Yes"), (120, "No")])
def test_spotter_sees_whether_discs_of_radius_35_touch(distance: int, verdict: str) -> None:
    picture = Sketch().disc(60, 120, 35, RED).disc(60 + distance, 120, 35, BLUE).picture()
    prompt = "Task: contact_check\nQuestion: Do they touch each other?"
    assert ShapeSpotter().answer(prompt, [picture]) == verdict


@pytest.mark.parametrize("count", [2, 4, 6])
def test_analyst_measures_nesting(count: int) -> None:
    sketch = Sketch()
    for k in range(count):
        sketch.path(*square(20 + 15 * k, 24 + 13 * k, 190 - 30 * k))
    assert ContourAnalyst().answer("Task: nesting_depth\nQuestion: How many squares?", [sketch.picture()]) == str(count)


@pytest.mark.parametrize("count", [1, 3, 7])
def test_analyst_counts_a_chain_of_rings(count: int) -> None:
    sketch = Sketch(320, 200)
    for k in range(count):
        sketch.ring(45 + 32 * k, 80 + 24 * (k % 2), 30)
    prompt = "Task: object_counting\nQuestion: Count the rings."
    assert ContourAnalyst().answer(prompt, [sketch.picture()]) == str(count)


def test_analyst_counts_pentagons_whose_corners_meet() -> None:
    sketch = Sketch(320, 200)
    centres = [(60, 60), (110, 115), (160, 60), (210, 115), (260, 60)]
    reach = 50 / math.sin(2 * math.pi / 5)  # neighbours of one row share a corner
    for x, y in centres:
        corners = [(x + reach * math.sin(k * math.pi * 0.4), y - reach * math.cos(k * math.pi * 0.4)) for k in range(5)]
        sketch.path(*corners, corners[0])
    assert ContourAnalyst().answer("Task: object_counting\nQuestion: Count the rings.", [sketch.picture()]) == "5"


def test_nested_squares_are_no_chain() -> None:
    sketch = Sketch()
    for k in range(4):
        sketch.path(*square(20 + 15 * k, 24 + 13 * k, 190 - 30 * k))
    assert ContourAnalyst().answer("Task: object_counting\nQuestion: How many squares?", [sketch.picture()]) == "1"


def lines_crossing_twice() -> Picture:
    sketch = Sketch().path((15, 40), (120, 200), (225, 40), colour=BLUE)
    return sketch.path((15, 120), (120, 100), (225, 130), colour=RED).picture()


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("How many times do the blue and red lines touch each other?", "2"),
        ("Do they touch each other?", "Yes"),
        ("How many times do the blue and green lines cross?", "unclear"),
        ("How many times does the red line cross the red line?", "unclear"),
        ("How many times does the red line cross?", "unclear"),
    ],
)
def test_tracer_counts_crossings_or_says_yes(question: str, reply: str) -> None:
    assert LineTracer().answer(f"Task: contact_check\nQuestion: {question}", [lines_crossing_twice()]) == reply


def test_tracer_finds_no_crossing_of_lines_apart() -> None:
    sketch = Sketch().path((15, 40), (120, 60), (225, 30), colour=BLUE)
    picture = sketch.path((15, 120), (120, 100), (225, 200), colour=RED).picture()
    prompt = "Task: contact_check\nQuestion: "
    assert LineTracer().answer(prompt + "How many times do the lines cross?", [picture]) == "0"
    assert LineTracer().answer(prompt + "Are they touching?", [picture]) == "No"


@pytest.mark.parametrize(
    ("pair", "count"), [(("A", "C"), "1"), (("C", "A"), "1"), (("D", "B"), "1"), (("A", "B"), "0")]
)
def test_tracer_follows_routes_between_stations(pair: tuple[str, str], count: str) -> None:
    unit = 252 / 18
    sketch = Sketch(252, 252)
    for name, x, y in (("A", 9, 1), ("B", 17, 9), ("C", 9, 17), ("D", 1, 9)):
        sketch.letter(x * unit, y * unit, name)
    for colour, walk in (
        (RED, [(8, 2), (8, 12), (10, 12), (10, 16)]),
        (BLUE, [(2, 9), (6, 9), (6, 6), (16, 6), (16, 8)]),
    ):
        sketch.path(*((x * unit, y * unit) for x, y in walk), colour=colour, width=4)
    prompt = f"Task: route_following\nQuestion: How many paths go from {pair[0]} to {pair[1]}?"
    assert LineTracer().answer(prompt, [sketch.picture()]) == count


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (9, 2), (5, 8)])
def test_tracer_sizes_a_grid(rows: int, columns: int) -> None:
    sketch = Sketch(300, 240)
    for row in range(rows + 1):
        sketch.path((20, 20 + 200 * row / rows), (280, 20 + 200 * row / rows))
    for column in range(columns + 1):
        sketch.path((20 + 260 * column / columns, 20), (20 + 260 * column / columns, 220))
    prompt = "Task: grid_sizing\nQuestion: Count the rows and columns."
    assert LineTracer().answer(prompt, [sketch.picture()]) == f"{rows},{columns}"


def chart() -> Picture:
    """Three upright bars on a base at y = 200; ten pixels are one unit."""
    sketch = Sketch().block(60, 80, 90, 200, BLUE).block(120, 120, 150, 200, BLUE).block(180, 50, 210, 200, BLUE)
    return sketch.path((50, 20), (50, 200), (220, 200)).picture()


CHART_TEXTS = (("Kalomi", 75, 212), ("Beturo", 135, 212), ("Sanike", 195, 212))
TICKS = (("0", 38, 200), ("5", 38, 150), ("10", 35, 100), ("15", 35, 50))


@pytest.mark.parametrize(("name", "value"), [("Kalomi", "12"), ("Beturo", "8"), ("Sanike", "15")])
def test_reader_reads_values_off_the_axis(name: str, value: str) -> None:
    prompt = f"Task: value_reading\n{texts(*CHART_TEXTS, *TICKS)}\nQuestion: What is the value of {name}?"
    assert float(ChartReader().answer(prompt, [chart()])) == pytest.approx(float(value), abs=0.2)


def test_reader_prefers_the_number_printed_at_the_bar() -> None:
    evidence = texts(*CHART_TEXTS, *TICKS, ("12.3", 75, 72))
    prompt = f"Task: value_reading\n{evidence}\nQuestion: How high is the bar Kalomi?"
    assert ChartReader().answer(prompt, [chart()]) == "12.3"


def test_reader_doubts_a_printed_number_that_the_axis_contradicts() -> None:
    evidence = texts(*CHART_TEXTS, *TICKS, ("72.3", 75, 72))
    prompt = f"Task: value_reading\n{evidence}\nQuestion: How high is the bar Kalomi?"
    assert float(ChartReader().answer(prompt, [chart()])) == pytest.approx(12, abs=0.2)


def test_reader_finds_a_name_that_was_misread_by_a_letter() -> None:
    evidence = texts(("Kaloni", 75, 212), *CHART_TEXTS[1:], *TICKS)
    prompt = f"Task: value_reading\n{evidence}\nQuestion: What value does the chart show for Kalomi?"
    assert float(ChartReader().answer(prompt, [chart()])) == pytest.approx(12, abs=0.2)


def test_reader_knows_no_bar_of_another_name() -> None:
    prompt = f"Task: value_reading\n{texts(*CHART_TEXTS, *TICKS)}\nQuestion: What is the value of Kalo?"
    assert ChartReader().answer(prompt, [chart()]) == "unclear"


def test_spotter_compares_a_shape_with_no_shape_but_another() -> None:
    sketch = Sketch().block(40, 40, 80, 80, RED).block(120, 120, 160, 160, BLUE)
    prompt = "Task: position_judging\nQuestion: Is the red square above the red square?"
    assert ShapeSpotter().answer(prompt, [sketch.picture()]) == "unclear"


def test_reader_shares_out_labels_that_were_read_as_one() -> None:
    one = {"text": "Kalomi Beturo Sanike", "score": 0.9, "box": [57, 207, 213, 217]}
    prompt = f"Task: extreme_finding\nOCR: {json.dumps([one])}\nQuestion: Which bar is the lowest?"
    assert ChartReader().answer(prompt, [chart()]) == "Beturo"


@pytest.mark.parametrize(
    ("question", "label"),
    [("Which one is the largest?", "Sanike"), ("Name the bar with the lowest value.", "Beturo")],
)
def test_reader_finds_extremes(question: str, label: str) -> None:
    prompt = f"Task: extreme_finding\n{texts(*CHART_TEXTS, *TICKS)}\nQuestion: {question}"
    assert ChartReader().answer(prompt, [chart()]) == label


def test_reader_reads_lying_bars() -> None:
    picture = Sketch().block(60, 40, 160, 70, RED).block(60, 100, 210, 130, RED).picture()
    evidence = texts(("Kalomi", 36, 55), ("Beturo", 36, 115), ("0", 60, 160), ("10", 110, 160), ("20", 160, 160))
    prompt = f"Task: value_reading\n{evidence}\nQuestion: What is the value of Beturo?"
    assert float(ChartReader().answer(prompt, [picture])) == pytest.approx(30, abs=0.5)


def test_reader_says_nothing_about_a_chart_without_texts() -> None:
    assert ChartReader().answer("Task: value_reading\nQuestion: What is the value of Kalomi?", [chart()]) == "unclear"


@pytest.mark.parametrize(
    ("labels", "length"),
    [
        ((("6", 120, 212), ("8", 28, 110), ("x", 138, 100)), "10"),
        ((("x", 120, 212), ("2.5", 28, 110), ("6.5", 138, 100)), "6"),
        ((("1", 120, 212), ("2", 28, 110), ("x", 138, 100)), "2.24"),
        ((("6", 120, 212), ("8", 28, 110)), "10"),
    ],
)
def test_geometer_finds_the_third_side(labels: tuple[tuple[str, float, float], ...], length: str) -> None:
    picture = Sketch().path((40, 200), (200, 200), (40, 30), (40, 200)).picture()
    prompt = f"Task: right_triangle\n{texts(*labels)}\nQuestion: How long is the side x?"
    assert Geometer().answer(prompt, [picture]) == length


@pytest.mark.parametrize(
    ("label", "question", "reply"),
    [
        ("Kamo", "How long is the side Kamo?", "10"),
        ("Karno", "How long is the side Kamo?", "10"),
        ("Kamo", "How long is the side Kari?", "unclear"),
        ("z", "How long is the side x?", "unclear"),
        ("Kamo", "How long is the missing side?", "10"),
    ],
)
def test_geometer_knows_which_side_the_question_names(label: str, question: str, reply: str) -> None:
    picture = Sketch().path((40, 200), (200, 200), (40, 30), (40, 200)).picture()
    evidence = texts(("6", 120, 212), ("8", 28, 110), (label, 138, 100))
    assert Geometer().answer(f"Task: right_triangle\n{evidence}\nQuestion: {question}", [picture]) == reply


def test_geometer_keeps_silent_without_two_sides() -> None:
    picture = Sketch().path((40, 200), (200, 200), (40, 30), (40, 200)).picture()
    prompt = f"Task: right_triangle\n{texts(('6', 120, 212))}\nQuestion: How long is the side x?"
    assert Geometer().answer(prompt, [picture]) == "unclear"


@pytest.mark.parametrize(
    ("program", "picture", "task", "right"),
    [
        (ShapeSpotter, scene, "value_reading", "4"),
        (ContourAnalyst, scene, "colour_naming", "red"),
        (LineTracer, lines_crossing_twice, "object_counting", "2"),
        (ChartReader, chart, "contact_check", "Sanike"),
        (Geometer, chart, "value_reading", "12"),
    ],
)
def test_a_foreign_task_is_not_answered_rightly(program: type, picture, task: str, right: str) -> None:
    reply = program().answer(f"Task: {task}\nQuestion: Which one is the largest?", [picture()])
    assert reply != right
    assert reply


def test_without_a_picture_nothing_is_clear() -> None:
    assert ShapeSpotter().answer("Task: object_counting\nQuestion: How many?", []) == "unclear"


def test_reader_sees_through_tick_marks_that_were_read_as_ones() -> None:
    evidence = texts(*CHART_TEXTS, ("0", 38, 200), ("51", 35, 150), ("101", 32, 100), ("15", 35, 50))
    prompt = f"Task: value_reading\n{evidence}\nQuestion: What is the value of Beturo?"
    assert float(ChartReader().answer(prompt, [chart()])) == pytest.approx(8, abs=0.2)


def test_reader_drops_an_accent_that_one_label_alone_has() -> None:
    evidence = texts(("Kalomi", 75, 212), ("Beturo", 135, 212), ("Saníke", 195, 212), *TICKS)
    prompt = f"Task: extreme_finding\n{evidence}\nQuestion: Which one is the largest?"
    assert ChartReader().answer(prompt, [chart()]) == "Sanike"


def test_reader_keeps_accents_where_several_labels_have_them() -> None:
    evidence = texts(("Málaga", 75, 212), ("Beturo", 135, 212), ("Cádiz", 195, 212), *TICKS)
    prompt = f"Task: extreme_finding\n{evidence}\nQuestion: Which one is the largest?"
    assert ChartReader().answer(prompt, [chart()]) == "Cádiz"


def test_reader_cuts_ticks_that_were_read_as_one_where_the_gaps_are() -> None:
    sketch = Sketch().block(60, 40, 160, 70, RED).block(60, 100, 210, 130, RED)
    for x, text in ((60, "0"), (110, "100"), (160, "200"), (210, "300")):
        sketch.letter(x, 160, text)
    ticks = {"text": "0 100 200 300", "score": 0.9, "box": [54, 148, 226, 172]}
    labels = json.loads(texts(("Kalomi", 36, 55), ("Beturo", 36, 115)).removeprefix("OCR: "))
    evidence = "OCR: " + json.dumps([*labels, ticks])
    prompt = f"Task: value_reading\n{evidence}\nQuestion: What is the value of Beturo?"
    assert float(ChartReader().answer(prompt, [sketch.picture()])) == pytest.approx(300, abs=6)


def test_geometer_takes_the_mark_of_the_right_angle_for_no_number() -> None:
    picture = Sketch().path((40, 200), (200, 200), (40, 30), (40, 200)).picture()
    labels = texts(("9", 46, 194), ("6", 120, 212), ("8", 28, 110))
    assert Geometer().answer(f"Task: right_triangle\n{labels}\nQuestion: How long is x?", [picture]) == "10"
