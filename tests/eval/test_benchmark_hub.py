"""A hub that can't be had: one clear fault each, with the way out, and never a wait without an end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from eval.benchmarks.catalogue import find_benchmark
from eval.benchmarks.hub import read_hub, through_datasets
from registry.errors import UserFault

ASK = """
import json, sys
from eval.benchmarks.hub import read_hub
from eval.benchmarks.spec import Benchmark, Hub, Scorer
from registry.errors import UserFault

found = {}
for name in ("gated", "none", "cut", "silent"):
    spec = Benchmark(name=name, title=name, licence="none", scorer=Scorer(official="exact", source="here"),
                     hub=Hub(id=f"stub/{name}", split="test"))
    try:
        next(read_hub(spec, deadline_s=4 if name == "silent" else 40))
    except UserFault as fault:
        found[name] = str(fault)
print(json.dumps(found))
"""


class Hub(BaseHTTPRequestHandler):
    """Answers by the data set's name: access not granted, not found, connection cut, or nothing at all."""

    def do_GET(self) -> None:
        if "stub/silent" in self.path:
            time.sleep(20)
        elif "stub/cut" in self.path:
            self.connection.close()
        else:
            gated = "stub/gated" in self.path
            self.send_response(403 if gated else 404)
            self.send_header("X-Error-Code", "GatedRepo" if gated else "RepoNotFound")
            self.send_header("X-Error-Message", "Access is restricted" if gated else "Repository not found")
            self.send_header("Content-Length", "0")
            self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = tmp_path_factory.mktemp("hub")
    changed = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HOME": str(home), "HF_HUB_OFFLINE": "0"}
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**kept, **changed},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=280,
    )
    server.shutdown()
    assert done.returncode == 0, done.stderr[-2000:]
    yield json.loads(done.stdout)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("gated", "access is granted by its owners only"),
        ("none", "there is none of that id"),
        ("cut", "it can't be reached"),
        ("silent", "nothing came for 4 s"),
    ],
)
def test_each_way_of_not_having_it_is_one_fault_with_the_way_out(
    answers: dict[str, str], name: str, cause: str
) -> None:
    first, where, fix = answers[name].split("\n")
    assert first.startswith(f"the data set can't be had from the hub: {cause}")
    assert where == f"  where: stub/{name} (test, main)"
    assert "give --data-root with a local copy" in fix


def test_a_benchmark_without_a_copy_on_the_hub_says_so() -> None:
    spec = find_benchmark("chartqa").model_copy(update={"hub": None})
    with pytest.raises(UserFault, match="has no copy on the hub"):
        next(read_hub(spec))


@pytest.mark.timeout(300)
def test_a_stream_that_is_not_read_to_its_end_leaves_no_thread_behind(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"n": n}) + "\n" for n in range(50)))
    stream = through_datasets("json", split="train", data_files=str(tmp_path / "x.jsonl"))
    assert next(stream) == {"n": 0}
    stream.close()
    until = time.monotonic() + 60
    while any(thread.name.startswith("hub json") for thread in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.timeout(300)
def test_a_wrong_split_is_told_as_the_yaml_to_correct(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(UserFault) as caught:
        next(through_datasets("json", split="tset", data_files=str(tmp_path / "x.jsonl")))
    assert "tset" in caught.value.what
    assert "hub.split" in str(caught.value.fix)
