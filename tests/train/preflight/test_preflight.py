"""`maestro train preflight`: one line a check, exit code 2 on a fault, and no GPU run starts past one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from maestro.cli.app import run
from registry.errors import UserFault
from train.config import TrainConfig
from train.preflight import experts
from train.preflight.preflight import CHECKS, preflight
from train.preflight.site import Site

CONFIGS = Path(__file__).parents[3] / "configs" / "train"

REGISTRY = """
experts:
  Reader:
    description: Reads charts.
    backend: {type: openai, model: lab/reader, replicas: [{url: "%s/v1"}]}
skills:
  Charts:
    description: Questions on charts.
    subskills:
      Bars:
        description: Bars.
        keywords: [bar]
        procedure: {steps: [{ask: "{{ question }}"}]}
"""


@pytest.fixture
def server() -> Iterator[str]:
    """A server that serves lab/reader and answers every question."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send({"data": [{"id": "lab/reader"}]})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kinds = [part["type"] for part in asked["messages"][0]["content"]]
            self._send({"choices": [{"message": {"content": "red"}}]} if "image_url" in kinds else {})

        def _send(self, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    stub = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=stub.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{stub.server_address[1]}"
    stub.shutdown()
    stub.server_close()


def registry(tmp_path: Path, url: str) -> str:
    file = tmp_path / "registry.yaml"
    file.write_text(REGISTRY % url)
    return str(file)


def test_experts_that_answer_a_picture_pass_and_a_server_that_is_gone_is_named(tmp_path: Path, server: str) -> None:
    site = Site(TrainConfig.model_validate({"registry": [registry(tmp_path, server)]}), timeout_s=60)
    assert experts.check(site).startswith("1 servers answer a question with a picture, in ")
    gone = {
        "version": 1,
        "written": 0,
        "experts": {"Reader": {"model": "lab/reader", "replicas": [{"url": "http://127.0.0.1:9/v1"}]}},
    }
    (tmp_path / "endpoints.json").write_text(json.dumps(gone))
    moved = {"registry": [registry(tmp_path, server)], "endpoints": str(tmp_path / "endpoints.json")}
    with pytest.raises(
        UserFault, match=r"1 of 1 servers do not answer .*: Reader at http://127\.0\.0\.1:9/v1: "
    ) as fault:
        experts.check(Site(TrainConfig.model_validate(moved), timeout_s=60))
    assert fault.value.where == str(tmp_path / "endpoints.json")


def test_on_several_nodes_servers_on_loopback_are_pointed_out(tmp_path: Path, server: str) -> None:
    fields = {
        "registry": [registry(tmp_path, server)], "platform": "cuda", "ray": {"address": "auto"},
        "cluster": {"nodes": 2, "gpus_per_node": 2},
    }  # fmt: skip
    said = experts.check(Site(TrainConfig.model_validate(fields), timeout_s=60))
    assert said.endswith("1 are on this node's loopback: every other node needs its own there")


def test_the_embedded_config_is_ready_and_what_comes_later_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    words = ["train", "preflight", str(CONFIGS / "embedded.yaml"), f"run={tmp_path / 'run'}"]
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ready"] is True
    states = {check["name"]: check["state"] for check in found["checks"]}
    later = ("policy", "template", "tokens", "rows")
    assert states == {name: "skipped" if name in later else "ok" for name in CHECKS}
    assert not (tmp_path / "run").exists()


def test_a_run_on_gpus_is_refused_here_in_one_message_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "Qwen3-VL-4B-Thinking"
    words = [str(CONFIGS / "paper_4xa100.yaml"), f"run={tmp_path / 'run'}", f"policy={policy}"]
    assert run(["train", *words, "--skip", "experts"]) == 2
    said = capsys.readouterr().err
    assert f"- policy  fault  the policy's folder holds no model (no config.json)  where: {policy}" in said
    assert "- rows  fault  " in said and "not looked at: template, tokens, experts" in said
    assert not (tmp_path / "run").exists()
    assert run(["train", "preflight", *words, "--skip", "experts", "--skip", "rows"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == list(CHECKS)
    assert next(line for line in lines if " rows " in line).split()[0] == "skipped"


def test_an_unknown_check_is_no_check_to_skip() -> None:
    with pytest.raises(UserFault, match="there is no check 'expert'") as fault:
        preflight(Site(TrainConfig()), ["expert"])  # type: ignore[call-arg]
    assert fault.value.fix == "did you mean 'experts'?"
