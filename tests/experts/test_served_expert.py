"""Experts behind an OpenAI-compatible server, against a small server on the loopback address."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from PIL import Image

from experts.clients.chat_reply import split_thought
from experts.clients.openai_backend import OpenAIExpertBackend
from experts.clients.replicas import Replicas
from experts.clients.retry import RetryPolicy
from experts.data_url import decode_data_url
from experts.images import load_picture
from experts.outcome import Delegation, ExpertFailure, ExpertReply, Outcome, Usage
from experts.pool import ExpertPool
from experts.request import Request
from registry.registry import Registry
from registry.schema import Expert, Limits, OpenAIBackend, Replica, Sampling, Skill, Tool

QUICK = RetryPolicy(tries=3, first_s=0.01, longest_s=0.02)


class Server:
    """Answers each request with the next step of its script, the last one again and again."""

    def __init__(self) -> None:
        self.script: list[Callable[[BaseHTTPRequestHandler], None]] = [says("42")]
        self.requests: list[dict[str, Any]] = []
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append({"path": self.path, "headers": self.headers, **json.loads(body)})
                step = outer.script[min(len(outer.requests), len(outer.script)) - 1]
                try:
                    step(self)
                except OSError:
                    pass  # the client left

            def log_message(self, *_: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.release.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def sends(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def step(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return step


def says(content: Any, finish: Any = "stop", usage: Any = None, **message: Any):
    choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return sends(200, json.dumps({"choices": [choice], "usage": usage}).encode())


def dead_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


def backend(*urls: str, key: str | None = None, **options: Any) -> OpenAIExpertBackend:
    limits = options.pop("limits", Limits())
    spec = OpenAIBackend(
        type="openai", model="m", replicas=tuple(Replica(url=url) for url in urls), api_key_env=key
    )
    return OpenAIExpertBackend(spec, limits, retry=options.pop("retry", QUICK), **options)


def ask(asked: OpenAIExpertBackend, prompt: str = "How many?", **fields: Any) -> ExpertReply:
    async def main() -> ExpertReply:
        try:
            return await asked.ask(Request(prompt, timeout_s=fields.pop("timeout_s", 5.0), **fields))
        finally:
            await asked.aclose()

    return asyncio.run(main())


def failure(asked: OpenAIExpertBackend, prompt: str = "How many?", **fields: Any) -> ExpertFailure:
    with pytest.raises(ExpertFailure) as caught:
        ask(asked, prompt, **fields)
    return caught.value


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
    assert (failed.outcome, failed.attempts) == (Outcome.ERROR, 1)
    assert "not a chat completion" in failed.message


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


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_dead_replica_rests_and_comes_back_after_a_good_probe(server: Server):
    clock = Clock()
    replicas = Replicas((Replica(url=server.url),), clock=clock)
    asked = backend(server.url, replicas=replicas)
    server.script = [sends(503, b"down")]
    assert failure(asked).attempts == 3
    assert len(server.requests) == 3

    at_once = failure(asked)  # all replicas rest: no request, no waiting
    assert (at_once.outcome, at_once.attempts, len(server.requests)) == (Outcome.UNAVAILABLE, 0, 3)

    clock.now = 6.0  # the probe fails, so it rests twice as long
    assert failure(asked).attempts == 1
    clock.now = 12.0
    assert failure(asked).attempts == 0

    clock.now = 17.0
    server.script = [says("back")]
    assert ask(asked).text == "back"
    assert ask(asked).attempts == 1
