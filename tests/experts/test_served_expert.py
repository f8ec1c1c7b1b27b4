"""Experts behind an OpenAI-compatible server, against a small server on the loopback address."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from PIL import Image
from server_doubles import Server, ask, backend, dead_url, failure, says, sends, servers

from experts.clients.chat_reply import split_thought
from experts.clients.chat_request import PictureParts, write_request
from experts.clients.retry import RetryPolicy
from experts.data_url import decode_data_url
from experts.images import Picture, load_picture
from experts.outcome import Delegation, Outcome, Usage
from experts.pool import ExpertPool
from experts.request import Request
from registry.registry import Registry
from registry.schema import Expert, Limits, Sampling, Skill, Tool


@pytest.fixture
def server() -> Iterator[Server]:
    with servers() as (one,):
        yield one


def test_a_question_with_a_picture_is_sent_and_the_answer_read(server: Server):
    server.script = [says(" 42 \n", usage={"prompt_tokens": 120, "completion_tokens": 3})]
    picture = load_picture(Image.new("RGB", (40, 30), (5, 6, 7)))
    reply = ask(
        backend(server.url, limits=Limits(max_output_tokens=64)),
        pictures=(picture,),
        system="Be brief.",
        sampling=Sampling(temperature=0.5, max_tokens=400),
    )
    assert (reply.text, reply.finish_reason, reply.attempts) == ("42", "stop", 1)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.calls) == (120, 3, 1)
    sent = server.requests[0]
    assert (sent["path"], sent["model"], sent["temperature"]) == ("/v1/chat/completions", "m", 0.5)
    assert sent["max_tokens"] == 64
    system, user = sent["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    image, words = user["content"]
    assert load_picture(decode_data_url(image["image_url"]["url"], max_bytes=10_000)) == picture
    assert words == {"type": "text", "text": "How many?"}


@pytest.mark.parametrize(
    ("step", "text", "reasoning", "finish"),
    [
        (says(None, "length", reasoning_content="I count"), "", "I count", "length"),
        (says(None, "stop", reasoning="I count"), "", "I count", "stop"),
        (says("", "stop"), "", "", "stop"),
        (says("<think>still counting", "length"), "", "still counting", "length"),
        (says("<think>one, two</think>\n2"), "2", "one, two", "stop"),
        (says("one, two</think> 2"), "2", "one, two", "stop"),
        (says([{"type": "text", "text": "4"}, {"type": "text", "text": "2"}], None), "42", "", "stop"),
    ],
)
def test_answer_and_reasoning_are_told_apart(server: Server, step, text, reasoning, finish):
    server.script = [step]
    reply = ask(backend(server.url))
    assert (reply.text, reply.reasoning, reply.finish_reason) == (text, reasoning, finish)


def test_thought_tags_in_the_middle_of_an_answer():
    assert split_thought("It is <think>hm</think>7") == ("It is 7", "hm")
    assert split_thought("plain") == ("plain", "")


def test_a_refused_request_is_never_tried_again(server: Server):
    server.script = [sends(400, b'{"error": {"message": "request is already running"}}')]
    failed = failure(backend(server.url))
    assert (failed.outcome, failed.attempts, len(server.requests)) == (Outcome.REFUSED, 1, 1)
    assert "already running" in failed.message


@pytest.mark.parametrize("status", [400, 405, 409, 410, 418, 422, 451])
def test_no_other_4xx_is_tried_again(server: Server, status: int):
    server.script = [sends(status, b"no")]
    failed = failure(backend(server.url))
    assert (failed.outcome, failed.attempts, len(server.requests)) == (Outcome.REFUSED, 1, 1)


def test_a_redirect_is_not_followed(server: Server):
    server.script = [sends(307, b"", Location="http://127.0.0.1:1/v1/chat/completions")]
    failed = failure(backend(server.url))
    assert (failed.outcome, failed.attempts) == (Outcome.UNAVAILABLE, 1)
    assert "answered 307" in failed.message


@pytest.mark.parametrize("status", [429, 500, 503])
def test_overload_and_server_faults_are_tried_again(server: Server, status: int):
    server.script = [sends(status, b"busy"), sends(status, b"busy"), says("done")]
    reply = ask(backend(server.url))
    assert (reply.text, reply.attempts) == ("done", 3)


@pytest.mark.parametrize(
    ("status", "outcome"), [(429, Outcome.UNAVAILABLE), (500, Outcome.ERROR), (503, Outcome.UNAVAILABLE)]
)
def test_tries_are_bounded_and_counted(server: Server, status: int, outcome: Outcome):
    server.script = [sends(status, b"busy")]
    failed = failure(backend(server.url))
    assert (failed.outcome, failed.attempts, len(server.requests)) == (outcome, 3, 3)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_is_the_machinerys_fault_and_not_tried_again(server: Server, status: int):
    server.script = [sends(status, b"no")]
    failed = failure(backend(server.url))
    assert (failed.outcome, failed.attempts) == (Outcome.UNAVAILABLE, 1)


def test_a_prompt_over_the_servers_context_is_too_long(server: Server):
    server.script = [sends(400, b"This model's maximum context length is 4096 tokens")]
    assert failure(backend(server.url)).outcome is Outcome.TOO_LONG


def test_a_prompt_that_cannot_fit_is_not_sent(server: Server):
    limits = Limits(context_tokens=100, max_output_tokens=10)
    failed = failure(backend(server.url, limits=limits), "x" * 2000)
    assert (failed.outcome, failed.attempts, server.requests) == (Outcome.TOO_LONG, 0, [])


def pours(handler: BaseHTTPRequestHandler) -> None:
    status = 400 if "error" in handler.headers.get("Authorization", "") else 200
    handler.send_response(status)
    handler.send_header("Content-Length", str(50 * 1024 * 1024))
    handler.end_headers()
    for _ in range(800):
        handler.wfile.write(b"x" * 65536)


def test_a_body_of_50_megabytes_is_cut_off_at_the_limit(server: Server):
    server.script = [pours]
    failed = failure(backend(server.url, limits=Limits(max_reply_bytes=10_000)))
    assert (failed.outcome, failed.attempts) == (Outcome.TOO_LONG, 1)
    assert failed.message == "the reply is larger than 10000 bytes"


def test_an_error_of_50_megabytes_is_cut_off_too(server: Server, monkeypatch):
    monkeypatch.setenv("EXPERT_KEY", "error")
    server.script = [pours]
    failed = failure(backend(server.url, key="EXPERT_KEY"))
    assert failed.outcome is Outcome.REFUSED
    assert len(failed.message) < 500


def test_a_server_that_never_answers_times_out(server: Server):
    server.script = [lambda _: server.release.wait(10) and None]
    start = time.monotonic()
    failed = failure(backend(server.url), timeout_s=0.1)
    assert (failed.outcome, failed.attempts) == (Outcome.TIMEOUT, 3)
    assert time.monotonic() - start < 8


def test_a_server_that_trickles_times_out(server: Server):
    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        while not server.release.wait(0.02):
            handler.wfile.write(b"{")

    server.script = [trickle]
    failed = failure(backend(server.url, retry=RetryPolicy(tries=1)), timeout_s=0.2)
    assert failed.outcome is Outcome.TIMEOUT


def test_cancelling_a_call_closes_its_connection(server: Server):
    gone = threading.Event()

    def watch(handler: BaseHTTPRequestHandler) -> None:
        if handler.connection.recv(1) == b"":
            gone.set()

    async def main() -> None:
        asked = backend(server.url)
        task = asyncio.create_task(asked.ask(Request("q")))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(gone.wait, 2)
        await asked.aclose()

    server.script = [watch]
    asyncio.run(main())


@pytest.mark.parametrize("body", [b"<html>gateway</html>", b"{}", b'{"choices": []}', b"[1]", b"\xff\xfe"])
def test_a_body_that_is_no_completion_is_an_error_that_shows_its_start(server: Server, body: bytes):
    server.script = [sends(200, body)]
    failed = failure(backend(server.url))
    assert (failed.outcome, failed.attempts) == (Outcome.ERROR, 3)
    assert "not a chat completion" in failed.message
    assert body[:6].decode("utf-8", "replace") in failed.message


def test_a_broken_reply_is_asked_for_again(server: Server):
    server.script = [sends(200, b'{"choices": [{"mess'), says("whole")]
    reply = ask(backend(server.url))
    assert (reply.text, reply.attempts) == ("whole", 2)


@pytest.mark.parametrize("count", [-5, "7", True, 10**40, 1.5, None])
def test_a_usage_that_is_no_count_is_none(server: Server, count):
    server.script = [says("42", usage={"prompt_tokens": count, "completion_tokens": 3})]
    usage = ask(backend(server.url)).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.calls) == (0, 3, 1)


def test_nobody_at_the_address_is_unavailable():
    url = dead_url()
    failed = failure(backend(url))
    assert (failed.outcome, failed.attempts) == (Outcome.UNAVAILABLE, 3)
    assert url in failed.message


def test_the_next_try_goes_to_another_replica(server: Server):
    reply = ask(backend(dead_url(), server.url))
    assert (reply.text, reply.attempts) == ("42", 2)


def test_the_key_comes_from_the_environment_and_its_absence_is_said(server: Server, monkeypatch):
    monkeypatch.delenv("EXPERT_KEY", raising=False)
    failed = failure(backend(server.url, key="EXPERT_KEY"))
    assert failed.outcome is Outcome.UNAVAILABLE
    assert "EXPERT_KEY" in failed.message
    monkeypatch.setenv("EXPERT_KEY", "s3cret")
    ask(backend(server.url, key="EXPERT_KEY"))
    assert server.requests[0]["headers"]["Authorization"] == "Bearer s3cret"


def test_words_cannot_act_as_chat_markers_or_image_placeholders(server: Server):
    ask(backend(server.url), "a<|im_end|>b<|image_pad|>c<image>d 1 < 2 | 3 > 2")
    text = server.requests[0]["messages"][0]["content"][0]["text"]
    assert text == "a< |im_end| >b< |image_pad| >c< image >d 1 < 2 | 3 > 2"


def test_half_characters_in_a_prompt_are_replaced(server: Server):
    ask(backend(server.url), "a\ud800b")
    assert server.requests[0]["messages"][0]["content"][0]["text"] == "a?b"


def test_no_request_asks_for_less_than_one_token(server: Server):
    with pytest.raises(ValueError):
        Sampling(max_tokens=0)
    with pytest.raises(ValueError):
        Limits(max_output_tokens=0)
    ask(backend(server.url, limits=Limits(max_output_tokens=1)))
    assert server.requests[0]["max_tokens"] == 1


def test_a_picture_is_encoded_once_for_all_tries_and_questions(server: Server, monkeypatch):
    encoded = []
    real = Picture.data_url
    monkeypatch.setattr(Picture, "data_url", lambda picture: encoded.append(picture) or real(picture))
    server.script = [sends(503, b"busy"), says("1"), says("2")]
    picture = load_picture(Image.new("RGB", (41, 37), (9, 8, 7)))
    for prompt in ("a", "b"):
        ask(backend(server.url), prompt, pictures=(picture,))
    assert (len(encoded), len(server.requests)) == (1, 3)


def test_the_kept_encoded_pictures_are_bounded():
    parts = PictureParts(max_bytes=1)
    picture = load_picture(Image.new("RGB", (40, 40)))
    assert parts.part(picture) == parts.part(picture)
    assert parts._used == 0


def test_the_environments_proxy_is_not_used_for_this_machine(server: Server, monkeypatch):
    monkeypatch.setenv("http_proxy", dead_url())
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask(backend(server.url)).text == "42"


def test_one_backend_serves_two_event_loops(server: Server):
    asked = backend(server.url)
    assert [ask(asked).text, ask(asked).text] == ["42", "42"]


def test_a_connection_lost_in_the_middle_of_the_reply_is_tried_again(server: Server):
    def half(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"choices"')
        handler.close_connection = True

    server.script = [half, says("whole")]
    reply = ask(backend(server.url))
    assert (reply.text, reply.attempts) == ("whole", 2)


def test_served_experts_and_tools_work_together_in_the_pool(server: Server):
    served = {"type": "openai", "model": "m", "replicas": [{"url": server.url}]}
    expert = Expert(name="Reader", description="d", backend=served, price={"input_per_mtok": 1.0})  # type: ignore[arg-type]
    tool = Tool(name="ocr", description="Read all text.", backend=served)  # type: ignore[arg-type]
    steps = [{"tool": "ocr", "save": "ocr"}, {"ask": "{{ ocr.text }}: {{ question }}"}]
    skill = Skill(
        name="Charts",
        description="d",
        subskills=[{"name": "read", "description": "d", "procedure": {"steps": steps}}],  # type: ignore[arg-type]
    )
    server.script = [says("A 3", usage={"prompt_tokens": 5}), says("3", usage={"prompt_tokens": 7})]
    picture = load_picture(Image.new("RGB", (40, 40)))

    async def main() -> Delegation:
        async with ExpertPool(Registry((expert,), (skill,), (tool,))) as pool:
            await pool.prepare()
            return await pool.delegate("Reader", "Charts", "How high?", (picture,))

    done = asyncio.run(main())
    assert (done.outcome, done.text, done.attempts) == (Outcome.OK, "3", 1)
    assert done.usage == Usage(12, 0, pytest.approx(7e-6), 2)
    asked = [request["messages"][0]["content"][1]["text"] for request in server.requests]
    assert asked == ["Read all text.", "A 3: How high?"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<start_of_turn>model", "< start_of_turn >model"),
        ("a<bos>b", "a< bos >b"),
        ("[INST] x [/INST]", "[ INST ] x [ /INST ]"),
        ("<|im_end|>", "< |im_end| >"),
        ("<｜end▁of▁sentence｜>＜｜User｜＞", "< ｜end▁of▁sentence｜ >< ｜User｜ >"),
        ("1 < 2 and [a] > <b>", "1 < 2 and [a] > <b>"),
    ],
)
def test_markers_of_other_chat_templates_are_words_too(text: str, plain: str) -> None:
    body = json.loads(write_request(Request(text, ()), "m", 16))
    assert body["messages"][0]["content"] == [{"type": "text", "text": plain}]
