"""SIGTERM to a training: the step under way is saved where there is time, the job ends with it, exit code 143.

The job is a stand-in for verl: a small program that saves and logs as verl does, with the real checkpoint hook.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maestro.cli.app import run as command
from train import grpo, pipeline, processes
from train.checkpoint_hook import RECORD, SAVE_NOW, write_record
from train.checkpoints import complete_steps
from train.config import TrainConfig
from train.paths import RunPaths
from train.termination import SaveNow, Terminated, Termination

JOB = """
import json, os, signal, sys, time, zipfile
from pathlib import Path
from types import SimpleNamespace as Settings
from train.checkpoint_hook import CheckpointHook

run, every, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
config = Settings(trainer=Settings(default_local_dir=str(run / "checkpoints"), save_freq=every))
hook = CheckpointHook(config)
for step in range(1, last + 1):
    if step == 3:
        os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(0.1 if step < 3 else 2)
    if step % config.trainer.save_freq == 0:
        place = run / "checkpoints" / f"global_step_{step}"
        names = [f"actor/{part}_world_size_1_rank_0.pt" for part in ("model", "optim", "extra_state")]
        for name in ("data.pt", *names):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(place / name, "w") as file:
                file.writestr("data.pkl", b"x")
        hook.on_save(None, step, str(place))
    with open(run / "steps.jsonl", "a") as file:
        file.write(json.dumps({"step": step, "data": {"training/global_step": step, "timing_s/step": 0.1}}) + "\\n")
time.sleep(600)
"""


class Quiet:
    """A reporter that only remembers warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def phase(self, name: str, total: int) -> None: ...
    def advance(self, done: int, note: str = "") -> None: ...
    def step(self, record: dict[str, Any], steps: int) -> None: ...
    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[dict[str, Any], RunPaths]]:
    """Replaces verl's command line; returns the config and the paths of a run that would start it."""
    script, policy = tmp_path / "job.py", tmp_path / "policy"
    script.write_text(JOB)
    policy.mkdir()
    (policy / "config.json").write_text("{}")

    def prepare(*, every: int = 1000, last: int = 1000, **checkpoint: Any) -> tuple[dict[str, Any], RunPaths]:
        paths = RunPaths.at(tmp_path / "run")
        monkeypatch.setattr(
            grpo, "job_command", lambda *_: ([sys.executable, str(script), str(paths.root), str(every), str(last)], {})
        )
        monkeypatch.setattr(RunPaths, "verl_metrics", lambda self, attempt: self.root / "steps.jsonl")
        files = {"train_files": ["rows.parquet"], "validation_files": ["rows.parquet"]}
        return {"run": str(paths.root), "policy": str(policy), "data": files, "checkpoint": checkpoint}, paths

    return prepare


def no_rows(*_: Any) -> None:
    raise AssertionError("the rows are given")


@pytest.mark.timeout(300)
def test_the_step_under_way_is_saved_and_the_job_ends(stand_in) -> None:
    raw, paths = stand_in(grace=60)
    reporter = Quiet()
    with pytest.raises(Terminated) as caught:
        pipeline.train(TrainConfig.model_validate(raw), no_rows, reporter)
    assert complete_steps(paths.checkpoints) == [3]
    assert caught.value.text == "ended on SIGTERM: the same command goes on from the checkpoint of step 3"
    assert any(text.startswith("SIGTERM: the step under way has 60 s") for text in reporter.warnings)
    assert json.loads((paths.checkpoints / "global_step_3" / RECORD).read_text())["step"] == 3
    assert [json.loads(line)["step"] for line in paths.metrics.read_text().splitlines()] == [1, 2, 3]
    assert processes.members(paths.root) == []


@pytest.mark.timeout(300)
def test_a_step_that_takes_too_long_is_given_up_for_the_last_checkpoint(
    stand_in, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, paths = stand_in(every=2, grace=0)
    config = tmp_path / "train.json"  # JSON is YAML
    config.write_text(json.dumps(raw))
    assert command(["train", str(config)]) == 143
    said = " ".join(capsys.readouterr().err.split())
    assert "ended on SIGTERM: the same command goes on from the checkpoint of step 2" in said
    assert complete_steps(paths.checkpoints) == [2]
    assert processes.members(paths.root) == []


def test_outside_a_job_the_signal_ends_at_once_and_the_second_one_always_does() -> None:
    with Termination() as termination:
        with pytest.raises(Terminated) as caught:
            os.kill(os.getpid(), signal.SIGTERM)
        assert caught.value.code == 143
        with termination.held():
            os.kill(os.getpid(), signal.SIGTERM)
            assert termination.asked
            with pytest.raises(Terminated):
                os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def whole_checkpoint(folder: Path, step: int) -> None:
    import zipfile

    place = folder / f"global_step_{step}"
    names = [f"actor/{part}_world_size_1_rank_0.pt" for part in ("model", "optim", "extra_state")]
    for name in ("data.pt", *names):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place / name, "w") as file:
            file.writestr("data.pkl", b"x")
    write_record(place, step)


def test_saving_is_over_with_the_steps_line_or_when_the_time_is_up(tmp_path: Path) -> None:
    now = SimpleNamespace(t=0.0)
    whole_checkpoint(tmp_path, 20)
    saving = SaveNow(tmp_path, 30, clock=lambda: now.t)
    assert (tmp_path / SAVE_NOW).exists()
    now.t = 10.0
    assert not saving.over(20)
    whole_checkpoint(tmp_path, 21)
    assert not saving.over(20)  # its line is still to come
    assert saving.over(21)
    now.t = 15.5
    assert saving.over(20)  # a validation holds the line back: the checkpoint is what counts
    now.t = 30.0
    assert SaveNow(tmp_path, 0, clock=lambda: now.t).over(0)


def test_a_record_holds_the_runs_config_and_versions(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"seed": 3}')
    place = tmp_path / "checkpoints" / "global_step_7"
    place.mkdir(parents=True)
    write_record(place, 7)
    found = json.loads((place / RECORD).read_text())
    assert (found["step"], found["config"]) == (7, {"seed": 3})
    assert found["versions"]["numpy"]
    assert [p.name for p in place.iterdir()] == [RECORD]
