"""Shards on a real Ray cluster of this machine: one dies hard and goes on, and the merge is that of one run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

REGISTRY = """
experts:
  Slow-Two:
    description: counts and colours of shapes
    backend: {type: python, target: "slow_double:SlowTwo"}
skills:
  Looking:
    description: looking
    subskills:
      look: {description: looks, keywords: [], procedure: {steps: [{ask: "{{ question }}"}]}}
"""
PROGRAM = """
import time


class SlowTwo:
    def answer(self, prompt, pictures):
        time.sleep(0.2)
        return "2"
"""
CONFIG = """
benchmark: embedded
run: run
rows: {test: 30, validation: 1}
arms:
  keyword: {kind: keyword}
expert_concurrency: 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow_double.py").write_text(PROGRAM)
    (tmp_path / "registry.yaml").write_text(REGISTRY)
    (tmp_path / "eval.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts `maestro evaluate` in the folder; a cluster of others is never used."""

    def _start(*options: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        command = [sys.executable, "-m", "maestro.cli.app", "evaluate", "eval.yaml", "--registry", "registry.yaml"]
        return subprocess.Popen(
            [*command, *options], cwd=folder, env=environment | {"PYTHONPATH": str(folder)}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hear_ctrl_c,
        )  # fmt: skip

    return _start


def hear_ctrl_c() -> None:
    """A job started in the background by a shell ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def writer_of(journal: Path) -> int | None:
    """The process that has this file open."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if any(os.path.samefile(link, journal) for link in (entry / "fd").iterdir() if link.exists()):
                    return int(entry.name)
            except OSError:
                continue
    return None


def wait_for_lines(journal: Path, count: int, job: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not journal.exists() or journal.read_bytes().count(b"\n") < count:
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < deadline, "the shard wrote nothing"
        time.sleep(0.1)


def test_a_shard_killed_hard_goes_on_and_the_whole_scores_like_one_run(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    job = start("--engine", "ray", "--shards", "2")
    journal = folder / "run-shard-2-of-2" / "journal.jsonl"
    wait_for_lines(journal, 3, job)
    worker = writer_of(journal)
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    out, err = job.communicate(timeout=600)
    assert job.returncode == 0, err
    assert "shard 2/2 died" in err
    assert "30 test questions" in out
    assert not list(folder.glob(".*"))

    job = start("--run", "straight")
    assert job.wait(timeout=300) == 0
    assert (folder / "run" / "scores.jsonl").read_bytes() == (folder / "straight" / "scores.jsonl").read_bytes()
    assert json.loads((folder / "run" / "results.json").read_text())["status"] == "complete"


def test_an_interrupt_leaves_no_worker_and_a_journal_that_goes_on(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    job = start("--engine", "ray", "--shards", "2")
    journal = folder / "run-shard-1-of-2" / "journal.jsonl"
    wait_for_lines(journal, 2, job)
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=120)
    assert job.returncode == 130, err
    assert writer_of(journal) is None
    assert 2 <= journal.read_bytes().count(b"\n") < 15
    assert not (folder / "run").exists()
    job = start("--engine", "ray", "--json")
    out, err = job.communicate(timeout=600)
    assert job.returncode == 0, err
    assert json.loads(out)["trajectories"] == 30
