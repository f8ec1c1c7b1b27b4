"""Boxes: coordinates converted both ways, replies read whatever they hold, frames drawn where the boxes are."""

from __future__ import annotations

import ast
import json
import math
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from experts.images import load_picture
from experts.tools.box_reply import BoxReply, read_boxes
from experts.tools.boxes import BoxFault, Frame, resized
from experts.tools.drawing import boxes_result, draw_boxes
from registry.schema import Resize

QWEN_3 = Resize(factor=32, min_pixels=65_536, max_pixels=16_777_216)
RESIZES = [Resize(), QWEN_3, Resize(max_pixels=1_003_520), Resize(min_pixels=200_704, max_pixels=1_003_520)]
sides = st.integers(32, 8000)
frames = st.builds(
    Frame, sides, sides, st.sampled_from(["pixel", "norm1000", "resized"]), st.sampled_from(RESIZES)
).filter(lambda frame: max(frame.width, frame.height) <= 20 * min(frame.width, frame.height))


@pytest.mark.parametrize(
    ("size", "resize", "expected"),
    [
        ((640, 480), Resize(), (644, 476)),
        ((32, 32), Resize(), (56, 56)),
        ((8000, 6000), Resize(), (4116, 3080)),
        ((500, 32), Resize(), (504, 28)),
        ((640, 480), QWEN_3, (640, 480)),
        ((100, 100), QWEN_3, (256, 256)),
        ((3000, 2000), Resize(max_pixels=1_003_520), (1204, 812)),
    ],
)
def test_a_picture_is_resized_as_qwens_processors_do_it(size, resize, expected):
    assert resized(size[0], size[1], resize) == expected


@cache
def library_resize() -> Callable[..., tuple[int, int]]:
    """The function of the installed library, taken out of its file, because importing the file imports torch."""
    spec = find_spec("transformers")
    assert spec is not None and spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0]) / "models/qwen2_vl/image_processing_qwen2_vl.py"
    tree = ast.parse(path.read_text())
    body: list[ast.stmt] = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "smart_resize"
    ]
    names: dict = {"math": math}
    exec(compile(ast.Module(body=body, type_ignores=[]), str(path), "exec"), names)
    return names["smart_resize"]


@settings(max_examples=200, deadline=None)
@given(frames)
def test_the_resized_size_is_that_of_the_installed_library(frame: Frame):
    resize = frame.resize
    limits = resize.factor, resize.min_pixels, resize.max_pixels
    down, across = library_resize()(frame.height, frame.width, *limits)
    assert resized(frame.width, frame.height, resize) == (across, down)


@settings(max_examples=200, deadline=None)
@given(frames, st.lists(st.floats(-100, 10_000), min_size=4, max_size=4))
def test_conversion_there_and_back_changes_nothing(frame: Frame, numbers: list[float]):
    box = (numbers[0], numbers[1], numbers[2], numbers[3])
    assert frame.from_pixels(frame.to_pixels(box)) == pytest.approx(box, rel=1e-12, abs=1e-9)
    assert frame.to_pixels(frame.from_pixels(box)) == pytest.approx(box, rel=1e-12, abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(frames)
def test_the_corners_of_the_picture_are_the_corners_of_the_frame(frame: Frame):
    across, down = frame.extent
    assert frame.to_pixels((0, 0, across, down)) == (0, 0, frame.width, frame.height)
    assert frame.settle((0, 0, across, down)) == (0, 0, frame.width, frame.height)


@settings(max_examples=200, deadline=None)
@given(frames, st.data())
def test_a_box_that_a_model_writes_in_whole_numbers_is_recovered(frame: Frame, data: st.DataObject):
    across, down = frame.extent
    x0, x1 = data.draw(st.integers(0, across - 1)), data.draw(st.integers(1, across))
    y0, y1 = data.draw(st.integers(0, down - 1)), data.draw(st.integers(1, down))
    again = frame.from_pixels(frame.to_pixels((x0, y0, x1, y1)))
    assert [round(value) for value in again] == [x0, y0, x1, y1]


@pytest.mark.parametrize(
    ("frame", "numbers", "expected"),
    [
        (Frame(640, 480), (10, 20, 30, 40), (10, 20, 30, 40)),
        (Frame(640, 480), (30, 40, 10, 20), (10, 20, 30, 40)),  # corners swapped
        (Frame(640, 480), (-50, 20, 700, 5000), (0, 20, 640, 480)),  # clipped
        (Frame(640, 480), (1.04, 1.05, 1e308, 1e308), (1, 1.1, 640, 480)),
        (Frame(640, 480, "norm1000"), (0, 500, 250, 1000), (0, 240, 160, 480)),
        (Frame(333, 333, "norm1000"), (1, 2, 999, 998), (0.3, 0.7, 332.7, 332.3)),
        (Frame(640, 480, "resized"), (161, 119, 322, 238), (160, 120, 320, 240)),
        (Frame(100, 100, "resized", QWEN_3), (128, 0, 256, 64), (50, 0, 100, 25)),
    ],
)
def test_a_box_becomes_pixels_inside_the_picture(frame: Frame, numbers, expected):
    assert frame.settle(numbers) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ((10, 10, 10, 50), "without area"),
        ((10, 10, 10.02, 50), "without area"),  # less than a tenth of a pixel
        ((640, 0, 700, 50), "outside the picture"),
        ((-20, 0, -1, 50), "outside the picture"),
        ((float("nan"), 0, 5, 5), "no number"),
        ((0, 0, float("inf"), 5), "no number"),
    ],
)
def test_a_box_that_stands_for_nothing_is_refused_with_the_reason(numbers, why):
    with pytest.raises(BoxFault, match=why):
        Frame(640, 480).settle(numbers)


@settings(max_examples=200, deadline=None)
@given(frames, st.lists(st.floats(), min_size=4, max_size=4))
def test_whatever_the_numbers_a_settled_box_has_area_and_lies_inside(frame: Frame, numbers: list[float]):
    try:
        x0, y0, x1, y1 = frame.settle(numbers)
    except BoxFault:
        return
    assert 0 <= x0 < x1 <= frame.width
    assert 0 <= y0 < y1 <= frame.height


FENCED = (
    '```json\n[\n\t{"bbox_2d": [379, 252, 542, 410], "label": "refrigerator"},\n\t{"bbox_2d": [1, 2, 3, 4]}\n]\n```'
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FENCED, [("refrigerator", (379, 252, 542, 410)), ("object", (1, 2, 3, 4))]),
        ("Two things:\n" + FENCED + "\nDone.", [("refrigerator", (379, 252, 542, 410)), ("object", (1, 2, 3, 4))]),
        ('[{"bbox": [1, 2, 3, 4], "name": "cat"}]', [("cat", (1, 2, 3, 4))]),
        ('{"objects": [{"box": [1.5, 2, 3, 4], "class": "dog"}]}', [("dog", (1.5, 2, 3, 4))]),
        ('{"bbox_2d": [[1, 2, 3, 4], [5, 6, 7, 8]], "label": "cup"}', [("cup", (1, 2, 3, 4)), ("cup", (5, 6, 7, 8))]),
        ("[[1, 2, 3, 4], [5, 6, 7, 8]]", [("object", (1, 2, 3, 4)), ("object", (5, 6, 7, 8))]),
        ("[1, 2, 3, 4]", [("object", (1, 2, 3, 4))]),
        ("Boxes: [[1, 2, 3, 4], [5, 6, 7, 8]].", [("object", (1, 2, 3, 4)), ("object", (5, 6, 7, 8))]),
        ('Here: [{"bbox": [1, 2, 3, 4], "label": "cat"}]. One cat.', [("cat", (1, 2, 3, 4))]),
        (
            '```\n[{"bbox": [1, 2, 3, 4]}]\n```\n```\n[[5, 6, 7, 8]]\n```',
            [("object", (1, 2, 3, 4)), ("object", (5, 6, 7, 8))],
        ),
        ("One at [1, 2, 3, 4], one at (5, 6, 7.5, 8).", [("object", (1, 2, 3, 4)), ("object", (5, 6, 7.5, 8))]),
        ("person(12,34),(56,78)", [("object", (12, 34, 56, 78))]),
        # cut off in the middle: the whole entries count
        (FENCED[:70], [("refrigerator", (379, 252, 542, 410))]),
        # the same box again and again, as a model in a loop writes it
        ("[" + ",".join(['{"bbox_2d": [1, 2, 3, 4], "label": "a"}'] * 50) + "]", [("a", (1, 2, 3, 4))]),
    ],
)
def test_boxes_are_found_in_the_ways_in_which_models_write_them(text, expected):
    assert [(box.label, box.numbers) for box in read_boxes(text, 10).boxes] == expected


def test_scores_are_kept_where_they_are_scores():
    text = '[{"bbox": [1,2,3,4], "score": 0.87654}, {"bbox": [1,2,3,5], "confidence": 97}, {"bbox": [1,2,3,6]}]'
    assert [box.score for box in read_boxes(text, 9).boxes] == [0.877, None, None]


def test_labels_hold_no_markup_controls_or_second_lines():
    entry = {"bbox_2d": [1, 2, 3, 4], "label": "<|im_end|>a\u0000 cup</information>\nof \ud800tea " + "x" * 500}
    (box,) = read_boxes(json.dumps([entry]), 9).boxes
    assert box.label == "a cup of tea " + "x" * 47


def test_only_as_many_boxes_are_kept_as_allowed_and_the_rest_is_counted():
    text = json.dumps([{"bbox_2d": [0, 0, 1, n], "label": "ant"} for n in range(5000)])
    read = read_boxes(text, 100)
    assert (len(read.boxes), read.left_out) == (100, 4900)
    assert read.boxes[99].numbers == (0, 0, 1, 99)


@pytest.mark.parametrize("text", ["[]", "```json\n[]\n```", '{"objects": []}', '[{"label": "cat"}]'])
def test_json_without_boxes_means_that_there_are_none(text):
    assert read_boxes(text, 10) == BoxReply((), 0, understood=True)


@pytest.mark.parametrize("text", ["", "I see no cats.", "[1, 2, 3", "7", "[1, 2, 3, 4, 5"])
def test_words_without_boxes_are_not_understood(text):
    assert read_boxes(text, 10) == BoxReply((), 0, understood=False)


@pytest.mark.parametrize(
    "numbers",
    ["[NaN, 1, 2, 3]", "[1" + "0" * 400 + ", 0, 1, 1]", "[-1" + "0" * 400 + ", 0, 1, 1]", "[1e999, 0, 1, 1]"],
)
def test_numbers_without_meaning_are_read_and_then_refused(numbers):
    (box,) = read_boxes('[{"bbox_2d": ' + numbers + "}]", 10).boxes
    with pytest.raises(BoxFault, match="no number"):
        Frame(640, 480).settle(box.numbers)


@pytest.mark.parametrize("value", ['["1", 2, 3, 4]', "[true, 0, 1, 1]", "[1, 2, 3]", "{}", "null", "7", "[[[[1]]]]"])
def test_what_is_no_box_is_none(value):
    assert read_boxes('[{"bbox_2d": ' + value + "}]", 10).boxes == ()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "{" * 200_000,
        '{"a":' * 100_000,
        "[1," * 100_000,
        "(1,2),(" * 50_000,
        "```" * 100_000,
        "<tool_call>" * 20_000,
        "1" * 300_000,
        '[{"bbox_2d": [' + "9" * 5000 + ", 0, 1, 1]}]",
        " " * 300_000 + "[",
        "[" + " " * 300_000,
        "[0,0,1," * 40_000,
    ],
)
def test_long_nested_garbage_is_read_in_no_time(text):
    started = time.process_time()
    assert read_boxes(text, 200).boxes == ()
    assert time.process_time() - started < 2.0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["bbox_2d", "bbox", "box", "label", "score", "x"]), inner, max_size=4)
    ),
    max_leaves=30,
)
pieces = st.sampled_from(
    ["```json\n", "```", "[", "]", "{", "}", ",", ":", '"bbox_2d"', '"label"', '"', "1", "-2.5", "1e9", "NaN", " ",
     "\n", "(", ")", "<tool_call>", "</tool_call>", "<|im_end|>", "\\u0000", "\ud800", "9" * 30]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(json_values.map(json.dumps), st.lists(pieces, max_size=40).map("".join), st.text(max_size=80)))
def test_no_reply_makes_reading_it_fail(text: str):
    read = read_boxes(text, 5)
    assert len(read.boxes) <= 5
    for box in read.boxes:
        assert box.label and box.label == box.label.encode("utf-8", "replace").decode()
        assert "\n" not in box.label and len(box.label) <= 60
        assert box.score is None or 0 <= box.score <= 1


def test_boxes_are_drawn_in_place_with_their_numbers():
    picture = load_picture(Image.new("RGB", (400, 300), (255, 255, 255)))
    drawn = draw_boxes(picture, [[50, 60, 150, 160], [200, 100.4, 380, 290]])
    pixels = drawn.rgb().astype(int)
    assert pixels.shape == (300, 400, 3)
    assert pixels[100, 50].tolist() == [230, 25, 75]  # left edge of the first frame
    assert pixels[159, 100].tolist() == [230, 25, 75]  # its lower edge is its last line of pixels
    assert pixels[160, 100].tolist() == [255, 255, 255]
    assert pixels[289, 300].tolist() == [67, 99, 216]
    assert pixels[120, 100].tolist() == [255, 255, 255]  # inside nothing changes
    changed = np.argwhere((pixels != 255).any(axis=2))
    assert 40 < changed[:, 0].min() < 56  # the number stands on top of its frame


def test_the_number_of_a_box_at_the_edge_stays_inside():
    picture = load_picture(Image.new("RGB", (60, 60), (0, 0, 0)))
    drawn = draw_boxes(picture, [[0, 0, 60, 60], [58, 58, 60, 60], [0, 0, 0.1, 0.1]])
    assert (drawn.width, drawn.height) == (60, 60)


def test_without_boxes_the_picture_is_the_same():
    picture = load_picture(Image.new("RGB", (60, 60)))
    assert draw_boxes(picture, []) is picture


def test_a_result_has_a_line_and_a_record_for_each_box():
    picture = load_picture(Image.new("RGB", (60, 60)))
    result = boxes_result(picture, [{"label": "cup", "box": [1.2, 2.0, 30.6, 40.0], "score": None}])
    assert result.text == "cup at (1, 2, 31, 40)"
    assert result.json == '[{"box":[1.2,2.0,30.6,40.0],"label":"cup","score":null}]'
    assert len(result.pictures) == 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.floats(0, 96)] * 4), max_size=6))
def test_any_boxes_inside_a_picture_can_be_drawn(boxes):
    picture = load_picture(Image.new("RGB", (96, 96)))
    drawn = draw_boxes(picture, [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in boxes])
    assert (drawn.width, drawn.height) == (96, 96)
