"""A small scripted server on the loopback address, and experts that ask it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from experts.clients.openai_backend import OpenAIExpertBackend
from experts.clients.retry import RetryPolicy
from experts.outcome import ExpertFailure, ExpertReply, Try
from experts.request import Request
from registry.registry import Registry
from registry.schema import Expert, Limits, OpenAIBackend, Replica, Skill

QUICK = RetryPolicy(tries=3, first_s=0.01, longest_s=0.02)

Step = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Answers each request with the next step of its script, the last one again and again."""

    def __init__(self) -> None:
        self.script: list[Step] = [says("42")]
        self.requests: list[dict[str, Any]] = []
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.asked = json.loads(body)
                outer.requests.append({"path": self.path, "headers": self.headers, **self.asked})
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

    def hangs(self, _: BaseHTTPRequestHandler) -> None:
        """A step that leaves the request without an answer."""
        self.release.wait(30)

    def close(self) -> None:
        self.release.set()
        self.http.shutdown()
        self.http.server_close()


@contextmanager
def servers(count: int = 1) -> Iterator[list[Server]]:
    started = [Server() for _ in range(count)]
    try:
        yield started
    finally:
        for one in started:
            one.close()


def sends(status: int, body: bytes, **headers: str) -> Step:
    def step(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return step


def says(content: Any, finish: Any = "stop", usage: Any = None, **message: Any) -> Step:
    choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return sends(200, json.dumps({"choices": [choice], "usage": usage}).encode())


def dead_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def backend(*urls: str, key: str | None = None, **options: Any) -> OpenAIExpertBackend:
    limits = options.pop("limits", Limits())
    spec = OpenAIBackend(type="openai", model="m", replicas=tuple(Replica(url=url) for url in urls), api_key_env=key)
    return OpenAIExpertBackend(spec, limits, retry=options.pop("retry", QUICK), **options)


def ask(
    asked: OpenAIExpertBackend, prompt: str = "How many?", *, tries: list[Try] | None = None, **fields: Any
) -> ExpertReply:
    async def main() -> ExpertReply:
        try:
            return await asked.ask(Request(prompt, timeout_s=fields.pop("timeout_s", 30.0), **fields), tries)
        finally:
            await asked.aclose()

    return asyncio.run(main())


def failure(asked: OpenAIExpertBackend, prompt: str = "How many?", **fields: Any) -> ExpertFailure:
    with pytest.raises(ExpertFailure) as caught:
        ask(asked, prompt, **fields)
    return caught.value


def served_registry(urls: Sequence[str], *, name: str = "Reader", asks: int = 1, **fields: Any) -> Registry:
    """One served expert, and the skill `Charts` that hands it the question, `asks` times."""
    served = {"type": "openai", "model": "m", "replicas": [{"url": url} for url in urls]}
    steps = {"steps": [{"ask": "{{ question }}"}] * asks}
    skill = {"name": "Charts", "description": "d", "subskills": [{"name": "a", "description": "d", "procedure": steps}]}
    expert = {"name": name, "description": "d", "backend": served, **fields}
    return Registry((Expert.model_validate(expert),), (Skill.model_validate(skill),))
