"""Servers are asked which version they run; one that does not say so stops nothing."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
from server_doubles import dead_url

from experts.serving.versions import server_versions
from registry.registry import Registry
from registry.schema import Expert, Tool

asked: list[tuple[str, str | None]] = []


@contextmanager
def says(status: int, body: bytes, hang: Event | None = None) -> Iterator[str]:
    """The OpenAI base URL of a server that answers every GET with that."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            if hang is not None:
                hang.wait(20)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                pass  # the client left

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        if hang is not None:
            hang.set()
        server.shutdown()
        server.server_close()


def served(*urls: str) -> dict[str, object]:
    return {"type": "openai", "model": "m", "replicas": [{"url": url} for url in urls], "api_key_env": "A_KEY"}


def expert(*urls: str, name: str = "Reader") -> Expert:
    return Expert(name=name, description="d", backend=served(*urls))  # type: ignore[arg-type]


def test_experts_tools_and_others_are_told_with_the_versions_of_all_their_replicas(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("A_KEY", "secret-7")
    asked.clear()
    with says(200, b'{"version": "0.24.0"}') as new, says(200, b'{"version": "0.23.1"}') as old:
        tool = Tool(name="ocr", description="d", backend=served(new))  # type: ignore[arg-type]
        program = Expert(name="Echo", description="d", backend={"type": "python", "target": "a:B"})  # type: ignore[arg-type]
        registry = Registry((expert(new, old, dead_url()), program), (), (tool,))
        found = asyncio.run(server_versions(registry, others={"server of policy P": f"{old}/"}))
    assert found == {
        "expert Reader": "vllm 0.23.1 | vllm 0.24.0",
        "tool ocr": "vllm 0.24.0",
        "server of policy P": "vllm 0.23.1",
    }
    assert asked == [("/version", None)] * 2  # each server once, and no key for what needs none


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b'{"version": "0.24.0"}'),
        (200, b"0.24.0"),
        (200, b'{"version": 24}'),
        (200, b'{"version": " \\u0007 "}'),
        (200, b'["version"]'),
        (200, b'{"version": "' + b"9" * 2_000_000 + b'"}'),
    ],
)
def test_a_server_that_does_not_say_is_left_out(status: int, body: bytes):
    with says(status, body) as url:
        assert asyncio.run(server_versions(Registry((expert(url),)))) == {}


def test_a_long_version_is_cut_and_one_that_never_answers_is_waited_for_a_bounded_time():
    hang = Event()
    with says(200, b'{"version": "' + b"9" * 100 + b'"}') as long, says(200, b"", hang) as silent:
        registry = Registry((expert(long, name="Long"), expert(silent, name="Silent")))
        start = time.monotonic()
        found = asyncio.run(server_versions(registry, timeout_s=0.3))
    assert found == {"expert Long": f"vllm {'9' * 60}..."}
    assert time.monotonic() - start < 5


def test_an_endpoints_file_says_where_to_ask_and_a_broken_one_is_left_to_the_pool(tmp_path: Path):
    file = tmp_path / "endpoints.json"
    with says(200, b'{"version": "0.24.0"}') as url:
        entry = {"model": "m", "replicas": [{"url": url, "weight": 1.0}]}
        registry = Registry((expert(dead_url()),))
        file.write_text(json.dumps({"version": 1, "written": 1.0, "experts": {"Reader": entry}, "tools": {}}))
        assert asyncio.run(server_versions(registry, file)) == {"expert Reader": "vllm 0.24.0"}
        file.write_text("{")
        assert asyncio.run(server_versions(registry, file)) == {}
