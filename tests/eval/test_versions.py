"""What the results say about the servers that answered."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from eval.arm import PolicySource
from eval.config import load_eval_config
from eval.run import evaluate
from eval.versions import served_versions
from registry.registry import Registry

REGISTRY = """
experts:
  Reader:
    description: reads
    backend: {{type: openai, model: m, replicas: [{{url: "{url}"}}]}}
skills:
  Reading:
    description: reading
    subskills:
      read: {{description: reads, keywords: [say], procedure: {{steps: [{{ask: "{{{{ question }}}}"}}]}}}}
"""

CONFIG = """
benchmark: embedded
run: {run}
rows: {{test: 1, validation: 0}}
policies: {{P: {{server: "{url}", model: m}}}}
arms: {{random: {{kind: random_pair}}}}
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer({"version": "0.24.0"} if self.path == "/version" else {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"choices": [{"message": {"role": "assistant", "content": "7"}, "finish_reason": "stop"}]})

    def answer(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{http.server_address[1]}/v1"
    http.shutdown()
    http.server_close()


def nobody() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


def registry(folder: Path, url: str) -> Registry:
    (folder / "registry.yaml").write_text(REGISTRY.format(url=url))
    return Registry.load(folder / "registry.yaml")


def kept(folder: Path, url: str) -> dict[str, str]:
    policies = {"P": PolicySource(server=url, model="m")}
    return asyncio.run(served_versions(folder, registry(folder, url), None, policies))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"expert Reader": "vllm 0.23.1", "python": "3.11", "expert Gone": "vllm 0.1"}, "vllm 0.23.1 | vllm 0.24.0"),
        ({"expert Reader": "vllm 0.24.0"}, "vllm 0.24.0"),
        ({}, "vllm 0.24.0"),
        (None, "vllm 0.24.0"),
    ],
)
def test_a_run_folder_keeps_what_served_its_earlier_starts(
    tmp_path: Path, server: str, before: dict[str, str] | None, now: str
) -> None:
    if before is not None:
        (tmp_path / "eval.json").write_text(json.dumps({"versions": before}))
    assert kept(tmp_path, server) == {"expert Reader": now, "server of policy P": "vllm 0.24.0"}
    earlier = (before or {}).get("expert Reader")
    assert kept(tmp_path, nobody()) == ({} if earlier is None else {"expert Reader": earlier})


def test_the_results_of_an_evaluation_name_what_its_servers_run(tmp_path: Path, server: str) -> None:
    (tmp_path / "eval.yaml").write_text(CONFIG.format(run=tmp_path / "run", url=server))
    config = load_eval_config(tmp_path / "eval.yaml", ())
    asyncio.run(evaluate(config, registry(tmp_path, server), tmp_path / "run"))
    versions = json.loads((tmp_path / "run" / "results.json").read_text())["versions"]
    assert versions["expert Reader"] == versions["server of policy P"] == "vllm 0.24.0"
