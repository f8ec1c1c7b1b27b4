"""Tools that look closer: which part a model asks for, and what is cut from our picture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tool_doubles import PICTURE, EyeServer, call, quartered, tool, use

from experts.tools.zoom_reply import NoZoom, read_zoom


@pytest.fixture
def server() -> Iterator[EyeServer]:
    server = EyeServer()
    yield server
    server.close()


def test_the_part_that_the_model_asks_for_is_cut_from_our_pixels(server: EyeServer):
    server.say(call([322.4, 240, 483, 357], label="the black part"))
    one = tool(server, "zoom", reads="zoom", box_format="resized")
    (result,) = use(one, {"query": "What is black?"}, picture=quartered())
    assert result.data == {"box": [320, 242, 480, 360], "factor": 2.0, "label": "the black part", "rounds": 1}
    assert result.text == "(320, 242, 480, 360) enlarged to 320x236"
    (part,) = result.pictures
    assert (part.width, part.height) == (320, 236)
    assert part.rgb()[118, 160].tolist() == [0, 0, 0]
    assert "Question: What is black?" in server.prompt()
    assert '"name": "image_zoom_in_tool"' in server.system()
    assert server.picture() == quartered()


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("<answer>It is red.</answer>", "the model asked for no part"),
        ("", "the model asked for no part"),
        (call([700, 0, 800, 90]), "the box [700.0, 0.0, 800.0, 90.0] is outside the picture"),
        (call([10, 10, 10, 90]), "the box [10.0, 10.0, 10.0, 90.0] is without area"),
        (call([float("nan"), 1, 2, 3]), "the box [nan, 1.0, 2.0, 3.0] has a coordinate that is no number"),
        (call([1, 2, 3]), "the call has no box"),
        (call([1, 2, 3, 4], name="image_rotate_tool"), "the model called 'image_rotate_tool'"),
        ("<tool_call>zoom in!</tool_call>", "the call cannot be read"),
        ("<tool_call>" + "[" * 50_000, "the call cannot be read"),
        ('<tool_call>{"name": 7, "arguments": 8}</tool_call>', "the call has no name"),
    ],
)
def test_without_a_usable_part_the_whole_picture_comes_with_the_reason(server: EyeServer, reply, why):
    server.say(reply)
    (result,) = use(tool(server, "zoom", reads="zoom"))
    assert result.data == {"box": None, "why": why}
    assert result.text == f"The whole picture (0, 0, 640, 480): {why}."
    assert result.pictures == (PICTURE,)


def test_a_call_inside_thoughts_that_never_end_counts(server: EyeServer):
    server.say("<think>" + call([320, 240, 640, 480]).replace("<think>", "").replace("</think>", ""))
    (result,) = use(tool(server, "zoom", reads="zoom"), picture=quartered())
    assert result.data["box"] == [320, 240, 640, 480]


def test_a_second_round_looks_inside_the_first_part(server: EyeServer):
    # The part is 320x240, shown twice as large: 160 pixels of what is shown are 80 of the picture.
    server.say(call([320, 240, 640, 480]), call([160, 120, 320, 240], label="corner"), "<answer>none</answer>")
    one = tool(server, "zoom", reads="zoom", zoom_rounds=3)
    (result,) = use(one, {"factor": "2"}, picture=quartered())
    assert result.data == {"box": [400, 300, 480, 360], "factor": 2.0, "label": "corner", "rounds": 2}
    assert [server.picture(index).width for index in range(3)] == [640, 640, 160]
    assert len(server.requests) == 3


def test_rounds_end_where_nothing_new_or_nothing_larger_is_asked_for(server: EyeServer):
    server.say(call([0, 0, 640, 480]), call([0, 0, 1280, 960]))
    (whole,) = use(tool(server, "zoom", reads="zoom", zoom_rounds=5), picture=quartered())
    assert (whole.data["box"], whole.data["rounds"], len(server.requests)) == ([0, 0, 640, 480], 1, 2)
    server.requests.clear()
    server.say(call([5, 5, 15, 15]))
    (tiny,) = use(tool(server, "zoom", reads="zoom", zoom_rounds=5), picture=quartered())
    assert (tiny.data["box"], len(server.requests)) == ([5, 5, 15, 15], 1)


def test_a_part_that_is_known_already_is_cut_without_asking(server: EyeServer):
    one = tool(server, "zoom", reads="zoom")
    (result,) = use(one, {"box": "[10.0, 20.0, 110.0, 70.0]", "factor": "3"})
    assert result.data == {"box": [10, 20, 110, 70], "factor": 3.0}
    assert (result.pictures[0].width, server.requests) == (300, [])


@pytest.mark.parametrize(
    ("text", "numbers", "label"),
    [
        (call([10, 20, 100, 200], label="the apple"), (10, 20, 100, 200), "the apple"),
        (
            '<tool_call>{"name": "image_zoom_in_tool", "arguments": "{\\"bbox_2d\\": [1, 2, 3, 4]}"}',
            (1, 2, 3, 4),
            "object",
        ),
        (call([1, 2, 3]) + call([1, 2, 3, 4]), (1, 2, 3, 4), "object"),
        ("<tool_call>\n<parameter=bbox_2d>\n[1, 2, 3, 4]\n</parameter>\n</tool_call>", (1, 2, 3, 4), "object"),
        ('```json\n[{"bbox_2d": [1, 2, 3, 4], "label": "sign"}]\n```', (1, 2, 3, 4), "sign"),
    ],
)
def test_the_part_is_found_in_the_ways_in_which_models_ask_for_it(text, numbers, label):
    found = read_zoom(text)
    assert (found.numbers, found.label) == (numbers, label)


@pytest.mark.parametrize("text", ["The value is at [1, 2, 3, 4].", "(1, 2, 3, 4)", "<tool_response>[1, 2, 3, 4]"])
def test_numbers_in_an_answer_are_no_request(text):
    with pytest.raises(NoZoom, match="no part"):
        read_zoom(text)
