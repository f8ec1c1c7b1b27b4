"""Tools behind an OpenAI-compatible server: what they are asked, and results that hold whatever is replied."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from server_doubles import Server, says, sends

from experts.cache import CallCache
from experts.caller import Ledger
from experts.data_url import decode_data_url
from experts.images import Picture, load_picture
from experts.outcome import ExpertFailure, ExpertReply, Outcome, Try, Usage
from experts.request import Request
from experts.tools.result import ToolResult
from experts.tools.served import ServedTool
from experts.tools.toolbox import Toolbox
from experts.tools.zoom_reply import NoZoom, read_zoom
from experts.workers import Workers
from registry.registry import Registry
from registry.schema import Tool

PICTURE = load_picture(Image.new("RGB", (640, 480), (250, 250, 250)))


def quartered() -> Picture:
    """640x480 with a quarter in each of four colours: red, green above blue, black."""
    image = Image.new("RGB", (640, 480), (200, 0, 0))
    image.paste((0, 200, 0), (320, 0, 640, 240))
    image.paste((0, 0, 200), (0, 240, 320, 480))
    image.paste((0, 0, 0), (320, 240, 640, 480))
    return load_picture(image)


class EyeServer(Server):
    """A server for tools, with what it was sent as tools send it."""

    def say(self, *texts: str) -> None:
        self.script = [says(text, usage={"prompt_tokens": 10, "completion_tokens": 2}) for text in texts]

    def system(self) -> str:
        return self.requests[0]["messages"][0]["content"]

    def prompt(self, index: int = 0) -> str:
        return self.requests[index]["messages"][-1]["content"][-1]["text"]

    def picture(self, index: int = 0) -> Picture:
        url = self.requests[index]["messages"][-1]["content"][0]["image_url"]["url"]
        return load_picture(decode_data_url(url, max_bytes=50_000_000))


@pytest.fixture
def server() -> Iterator[EyeServer]:
    server = EyeServer()
    yield server
    server.close()


def tool(server: EyeServer, name: str = "ocr", **fields: Any) -> Tool:
    backend = {"type": "openai", "model": "m", "replicas": [{"url": server.url}]}
    return Tool(name=name, description=fields.pop("description", "Text."), backend=backend, **fields)  # type: ignore[arg-type]


def use(one: Tool, *args: dict[str, str], picture: Picture = PICTURE, ledger: Ledger | None = None) -> list[ToolResult]:
    """The results of using the tool with each of the arguments, one after another."""

    async def main() -> list[ToolResult]:
        box = Toolbox(Registry(tools=(one,)), Workers(), CallCache())
        try:
            return [await box.use(one.name, picture, given, ledger or Ledger()) for given in args or ({},)]
        finally:
            await box.aclose()

    return asyncio.run(main())


def failure(one: Tool, **options: Any) -> ExpertFailure:
    with pytest.raises(ExpertFailure) as caught:
        use(one, **options)
    return caught.value


def test_a_text_tool_gives_the_reply_and_a_record_for_each_line(server: EyeServer):
    server.say("```markdown\nTotal  12\n\n  Tax 3\r\nEnd\x00\n```")
    ledger = Ledger()
    (result,) = use(tool(server, prompt="Text Recognition:"), ledger=ledger)
    assert result.text == "Total  12\n\n  Tax 3\nEnd"
    assert result.data == [
        {"text": "Total  12", "box": None, "score": None},
        {"text": "Tax 3", "box": None, "score": None},
        {"text": "End", "box": None, "score": None},
    ]
    assert server.prompt() == "Text Recognition:"
    assert server.picture() == PICTURE
    assert ledger.usage == Usage(10, 2, 0.0, 1)


def test_a_caption_is_asked_for_in_our_words_unless_the_step_or_the_registry_has_others(server: EyeServer):
    server.say("<|begin_of_box|>A dog.<|end_of_box|>")
    first, second = use(tool(server, "caption"), {}, {"prompt": "What is in it?"})
    use(tool(server, "caption", prompt="In {{ width }}x{{ height }}: {{ query }}"), {"query": "how\nmany?"})
    use(tool(server, "texts", description="Read the text."))
    assert first.text == second.text == "A dog."
    assert server.prompt(0).startswith("Describe this picture in one paragraph")
    assert [server.prompt(index) for index in (1, 2, 3)] == [
        "What is in it?",
        "In 640x480: how many?",
        "Read the text.",
    ]


def test_the_reply_may_be_as_long_as_the_tools_limit(server: EyeServer):
    use(tool(server, limits={"max_output_tokens": 3000}))
    assert (server.requests[0]["max_tokens"], server.requests[0]["temperature"]) == (3000, 0.0)


def test_what_a_step_passes_is_never_a_template(server: EyeServer):
    use(tool(server, "detect", reads="boxes"), {"query": "{{ 7 * 7 }} cats"})
    use(tool(server, "caption"), {"prompt": "{{ 7 * 7 }}"})
    assert "{{ 7 * 7 }} cats" in server.prompt(0)
    assert server.prompt(1) == "{{ 7 * 7 }}"


BOXES = (
    '```json\n[{"bbox_2d": [161, 119, 322, 238], "label": "cup"}, {"bbox_2d": [700, 0, 600, 50], "label": "pen"}]\n```'
)


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


def call(box: Any, name: str = "image_zoom_in_tool", **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": {"bbox_2d": box, **arguments}})
    return f"<think>I have to look closer.</think>\n<tool_call>\n{body}\n</tool_call>"


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


@pytest.mark.parametrize("args", [{"box": "1,2"}, {"factor": "9"}, {"factor": "big"}, {"box": "900,0,950,9"}])
def test_arguments_that_cannot_be_read_are_the_procedures_fault(server: EyeServer, args):
    with pytest.raises(ExpertFailure, match=r"^(box must|factor must|nothing inside)") as caught:
        use(tool(server, "zoom", reads="zoom"), args)
    assert caught.value.outcome is Outcome.ERROR
    assert caught.value.message.startswith("tool 'zoom': ")
    assert server.requests == []


@pytest.mark.parametrize("reads", ["text", "boxes", "zoom"])
def test_a_reply_of_50_mb_is_too_long(server: EyeServer, reads):
    server.say("x" * 50_000_000)
    found = failure(tool(server, "eye", reads=reads))
    assert (found.outcome, found.message) == (Outcome.TOO_LONG, "tool 'eye': the reply is larger than 262144 bytes")


@pytest.mark.parametrize("reads", ["text", "boxes", "zoom"])
@pytest.mark.parametrize("body", [b"", b"{}", b"<html>", b'{"choices": [{"message": {"content": NaN}}]}'])
def test_what_is_no_completion_is_a_typed_failure_or_an_empty_result(server: EyeServer, reads, body):
    server.script = [sends(200, body)]
    try:
        (result,) = use(tool(server, "eye", reads=reads))
    except ExpertFailure as found:
        assert found.outcome is Outcome.ERROR
    else:
        assert b"NaN" in body
        assert result.data in ([], {"box": None, "why": "the model asked for no part"})


@pytest.mark.parametrize("reads", ["text", "boxes", "zoom"])
def test_control_tokens_and_protocol_tags_in_a_reply_break_nothing(server: EyeServer, reads):
    server.say('</information><answer>7</answer><|im_end|>\ud800[{"bbox_2d": [1, 2, 30, 40], "label": "<search>x"}]')
    (result,) = use(tool(server, "eye", reads=reads))
    assert json.loads(result.json) == result.data
    assert result.text.encode()
    if reads == "boxes":
        assert result.data == [{"label": "x", "box": [1.0, 2.0, 30.0, 40.0], "score": None}]


def test_a_served_tools_result_is_kept_only_where_it_is_marked_deterministic(server: EyeServer):
    server.say("first", "second", "third")
    assert [result.text for result in use(tool(server), {}, {})] == ["first", "second"]
    server.requests.clear()
    assert [result.text for result in use(tool(server, deterministic=True), {}, {})] == ["first", "first"]


def test_kept_results_keep_pictures_and_notes(server: EyeServer):
    server.say(BOXES)
    ledgers = Ledger(), Ledger()

    async def main() -> list[ToolResult]:
        one = tool(server, "detect", reads="boxes", max_boxes=1, deterministic=True)
        box = Toolbox(Registry(tools=(one,)), Workers(), CallCache())
        try:
            return [await box.use("detect", PICTURE, {}, ledger) for ledger in ledgers]
        finally:
            await box.aclose()

    first, second = asyncio.run(main())
    assert first == second
    assert len(server.requests) == 1
    assert ledgers[0].notes == ledgers[1].notes == ["tool 'detect': boxes left out beyond the first 1: 1"]


def test_another_prompt_or_reading_is_another_call(server: EyeServer):
    fields = {"reads": "boxes", "deterministic": True}
    cache = CallCache()

    async def once(one: Tool) -> None:
        box = Toolbox(Registry(tools=(one,)), Workers(), cache)
        try:
            await box.use("detect", PICTURE, {}, Ledger())
        finally:
            await box.aclose()

    server.say(BOXES)
    for more in ({}, {}, {"prompt": "Find all."}, {"box_format": "norm1000"}, {"max_boxes": 9}, {"revision": "2"}):
        asyncio.run(once(tool(server, "detect", **fields, **more)))
    assert len(server.requests) == 5


class Says:
    """A client that replies with one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def ask(self, request: Request, tries: list[Try] | None = None) -> ExpertReply:
        return ExpertReply(self.text)


numbers = st.one_of(st.integers(), st.floats(), st.integers(10**300, 10**320), st.sampled_from([0, 1, 320, 640, 1000]))
replies = st.one_of(
    st.text(max_size=60),
    st.lists(numbers, min_size=3, max_size=5).map(lambda box: json.dumps([{"bbox_2d": box, "label": "a"}])),
    st.lists(numbers, min_size=3, max_size=5).map(call),
    st.lists(
        st.sampled_from(
            ["<tool_call>", "</tool_call>", "{", "}", '"arguments":', '"bbox_2d":', "[1,2,", "30,40]", "\n"]
        )
    ).map("".join),
)


@settings(max_examples=150, deadline=None)
@given(
    replies,
    st.sampled_from(["text", "boxes", "zoom"]),
    st.sampled_from(["pixel", "norm1000", "resized"]),
    st.integers(1, 3),
)
def test_whatever_a_model_replies_the_result_is_whole(reply: str, reads: str, box_format: str, rounds: int):
    picture = load_picture(Image.new("RGB", (64, 48), (9, 99, 199)))
    backend = {"type": "openai", "model": "m", "replicas": [{"url": "http://127.0.0.1:1/v1"}]}
    one = Tool(name="t", description="d", backend=backend, reads=reads, box_format=box_format, zoom_rounds=rounds)  # type: ignore[arg-type]
    result = asyncio.run(ServedTool(one, Says(reply)).run(picture, {}, Ledger()))
    assert json.loads(json.dumps(result.data, allow_nan=False)) == result.data
    assert result.text.encode() is not None
    if reads == "boxes":
        for record in result.data:
            x0, y0, x1, y1 = record["box"]
            assert 0 <= x0 < x1 <= 64 and 0 <= y0 < y1 <= 48
    if reads == "zoom":
        assert len(result.pictures) == 1
        box = result.data["box"]
        assert box is None or (0 <= box[0] < box[2] <= 64 and 0 <= box[1] < box[3] <= 48)


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
