"""Tools that find things: boxes out of replies, in pixels of the picture."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from server_doubles import says
from tool_doubles import BOXES, PICTURE, EyeServer, tool, use

from experts.caller import Ledger


@pytest.fixture
def server() -> Iterator[EyeServer]:
    server = EyeServer()
    yield server
    server.close()


@pytest.mark.parametrize(
    ("fields", "extent", "first", "second"),
    [
        ({}, "640, 480", [161.0, 119.0, 322.0, 238.0], [600.0, 0.0, 640.0, 50.0]),
        ({"box_format": "norm1000"}, "1000, 1000", [103.0, 57.1, 206.1, 114.2], [384.0, 0.0, 448.0, 24.0]),
        ({"box_format": "resized"}, "644, 476", [160.0, 120.0, 320.0, 240.0], [596.3, 0.0, 640.0, 50.4]),
        (
            {"box_format": "resized", "resize": {"factor": 32, "min_pixels": 65_536, "max_pixels": 100_000}},
            "352, 256",
            [292.7, 223.1, 585.5, 446.2],
            None,
        ),
    ],
)
def test_boxes_come_in_pixels_of_the_picture_in_each_format(server: EyeServer, fields, extent, first, second):
    server.say(BOXES)
    ledger = Ledger()
    (result,) = use(tool(server, "detect", reads="boxes", **fields), {"query": "things"}, ledger=ledger)
    cup = {"label": "cup", "box": first, "score": None}
    assert result.data == ([cup] if second is None else [cup, {"label": "pen", "box": second, "score": None}])
    assert f"to {extent} at the lower right" in server.prompt()
    assert "about: things" in server.prompt()
    (drawn,) = result.pictures
    x, y = round(first[0]), round((first[1] + first[3]) / 2)
    assert drawn.rgb()[y, x].tolist() == [230, 25, 75]
    assert ledger.notes == ([] if second else ["tool 'detect': boxes left out because each is outside the picture: 1"])


def test_a_line_tells_where_each_thing_is(server: EyeServer):
    server.say(BOXES)
    (result,) = use(tool(server, "detect", reads="boxes"))
    assert result.text == "cup at (161, 119, 322, 238)\npen at (600, 0, 640, 50)"


def test_no_boxes_leave_the_picture_as_it_is(server: EyeServer):
    server.say("[]", "I see nothing of the kind.")
    ledger = Ledger()
    for result in use(tool(server, "detect", reads="boxes"), {}, {}, ledger=ledger):
        assert (result.text, result.data, result.pictures) == ("", [], (PICTURE,))
    assert ledger.notes == ["tool 'detect': no box in the reply 'I see nothing of the kind.'"]


def test_thousands_of_boxes_are_bounded_and_counted(server: EyeServer):
    server.say(json.dumps([{"bbox_2d": [n, 0, n + 1, 9], "label": "ant"} for n in range(600)]))
    ledger = Ledger()
    (result,) = use(tool(server, "detect", reads="boxes", max_boxes=50), ledger=ledger)
    assert len(result.data) == 50
    assert ledger.notes == ["tool 'detect': boxes left out beyond the first 50: 550"]


def test_a_reply_cut_off_at_its_limit_gives_what_it_holds(server: EyeServer):
    server.script = [says(BOXES[:70], "length")]
    ledger = Ledger()
    (result,) = use(tool(server, "detect", reads="boxes"), ledger=ledger)
    assert [record["label"] for record in result.data] == ["cup"]
    assert ledger.notes == ["tool 'detect': the reply was cut off at its limit of tokens"]
