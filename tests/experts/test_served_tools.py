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
from server_doubles import sends
from tool_doubles import BOXES, PICTURE, EyeServer, call, failure, tool, use

from experts.cache import CallCache
from experts.caller import Ledger
from experts.images import load_picture
from experts.outcome import ExpertFailure, ExpertReply, Outcome, Try, Usage
from experts.request import Request
from experts.tools.result import ToolResult
from experts.tools.served import ServedTool
from experts.tools.toolbox import Toolbox
from experts.workers import Workers
from registry.registry import Registry
from registry.schema import Tool


@pytest.fixture
def server() -> Iterator[EyeServer]:
    server = EyeServer()
    yield server
    server.close()


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


@pytest.mark.parametrize("args", [{"box": "1,2"}, {"factor": "9"}, {"factor": "big"}, {"box": "900,0,950,9"}])
def test_arguments_that_cannot_be_read_are_the_procedures_fault(server: EyeServer, args):
    with pytest.raises(ExpertFailure, match=r"^(box must|factor must|nothing inside)") as caught:
        use(tool(server, "zoom", reads="zoom"), args)
    assert caught.value.outcome is Outcome.ERROR
    assert caught.value.message.startswith("tool 'zoom': ")
    assert server.requests == []


@pytest.mark.parametrize(
    ("picture", "args", "outcome"),
    [(PICTURE, {}, Outcome.UNAVAILABLE), (None, {}, Outcome.REFUSED), (PICTURE, {"box": "0,0,64,48"}, None)],
)
def test_a_tool_waits_for_no_place_while_every_server_rests(server: EyeServer, picture, args, outcome):
    server.script = [server.hangs]

    async def main() -> tuple[ExpertFailure | ToolResult, bool, dict[str, Any]]:
        one = tool(server, "zoom", reads="zoom", limits={"max_concurrency": 1, "timeout_s": 20})
        box = Toolbox(Registry(tools=(one,)), Workers(), CallCache())
        try:
            held = asyncio.create_task(box.use("zoom", PICTURE, {"query": "hangs"}, Ledger()))
            while not server.requests:
                await asyncio.sleep(0.01)
            client = box._benches["zoom"].client
            assert client is not None
            for _ in range(3):
                with client._replicas.lease() as lease:
                    assert lease is not None
                    lease.alive = False
            second = asyncio.create_task(box.use("zoom", picture, args, Ledger()))
            await asyncio.wait([second], timeout=5 if outcome is Outcome.UNAVAILABLE else 0.2)
            waited = not second.done()
            held.cancel()
            (found,) = await asyncio.gather(second, return_exceptions=True)
            assert isinstance(found, ExpertFailure | ToolResult)
            return found, waited, box.status()["zoom"]
        finally:
            await box.aclose()

    found, waited, status = asyncio.run(main())
    # Only what asks the model has nothing to wait for; the others get their turn.
    assert waited == (outcome is not Outcome.UNAVAILABLE)
    assert (status["queued"], status["in_flight"], status["calls"]) == (0, 0, 2)
    if isinstance(found, ToolResult):
        assert outcome is None and found.data["box"] == [0, 0, 64, 48]
    else:
        assert (found.outcome, found.attempts) == (outcome, 0)
        if outcome is Outcome.UNAVAILABLE:
            assert found.message == "tool 'zoom': no server takes requests now"
            assert status["outcomes"] == {"unavailable": 1, "given_up": 1}


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
