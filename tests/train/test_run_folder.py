"""One folder, one run: its config is pinned, it is trained by one process, and its phases need something to learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from registry.errors import UserFault
from train import pipeline
from train.cold_start import run_cold_start
from train.config import ColdStartSection, TrainConfig
from train.curves import read_metrics
from train.grpo import write_job_files
from train.identity import alone, pin_config
from train.paths import RunPaths
from train.run_view import read_view

SECTION = ColdStartSection()  # type: ignore[call-arg]


def config_of(**fields: Any) -> TrainConfig:
    return TrainConfig.model_validate(fields)


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return RunPaths.at(tmp_path)


def test_a_changed_config_is_refused_with_the_difference(paths: RunPaths) -> None:
    pin_config(config_of(seed=1, grpo={"rate": 1e-4}), paths)
    with pytest.raises(UserFault) as caught:
        pin_config(config_of(seed=2, grpo={"rate": 3e-4}), paths)
    assert caught.value.what.splitlines() == [
        "the run was started with another config:",
        "--- this run",
        "+++ asked for",
        '-  "rate": 0.0001,',
        '+  "rate": 0.0003,',
        '- "seed": 1,',
        '+ "seed": 2,',
    ]
    assert caught.value.where == str(paths.root)
    assert json.loads(paths.config.read_text())["seed"] == 1


def test_more_steps_and_other_checkpoints_are_the_same_run(paths: RunPaths) -> None:
    pin_config(config_of(grpo={"steps": 10}), paths)
    pin_config(config_of(grpo={"steps": 20}, checkpoint={"every": 5}, run="/elsewhere"), paths)
    assert json.loads(paths.config.read_text())["grpo"]["steps"] == 20
    assert [p.name for p in paths.root.iterdir()] == ["config.json"]


def test_starting_anew_with_another_config_forgets_rows_and_policies(paths: RunPaths) -> None:
    pin_config(config_of(seed=1), paths)
    for folder in (paths.train_rows.parent, paths.blank, paths.cold, paths.cache):
        folder.mkdir()
    pin_config(config_of(seed=1, resume="never"), paths)
    assert paths.cold.exists()  # the same config makes the same policy
    pin_config(config_of(seed=2, resume="never"), paths)
    assert sorted(p.name for p in paths.root.iterdir()) == ["cache", "config.json"]


def test_a_second_process_on_the_same_run_is_refused(paths: RunPaths) -> None:
    with alone(paths):
        with pytest.raises(UserFault, match="another process is training this run"), alone(paths):
            raise AssertionError
        other = RunPaths.at(paths.root / "other")
        other.root.mkdir()
        with alone(other):
            pass
    with alone(paths):
        pass


def test_seconds_are_added_up_over_calls(paths: RunPaths) -> None:
    paths.summary.write_text(json.dumps({"root": "x", "steps": 3, "seconds": {"rows": 2.0}}))
    summary = pipeline._read_summary(paths, config_of(grpo={"steps": 9}))
    assert summary.steps == 9
    with pytest.raises(OSError), pipeline._timed(summary, paths, "rows"):
        raise OSError
    assert json.loads(paths.summary.read_text())["seconds"]["rows"] >= 2.0
    paths.summary.write_text('{"root": ')
    assert pipeline._read_summary(paths, config_of()).seconds == {}


def test_the_files_for_verls_processes_say_where_and_how_far(paths: RunPaths) -> None:
    write_job_files(config_of(seed=4, protocol={"horizon": 2}), paths, 3)
    settings = json.loads(paths.rollout_settings.read_text())
    assert (settings["attempt"], settings["seed"], settings["budget"]["horizon"]) == (3, 4, 2)
    assert settings["rollouts"] == str(paths.root / "rollouts.jsonl")
    assert all(Path(file).is_absolute() and Path(file).exists() for file in settings["registry"])
    assert "train.agent_loop.OrchestratorAgentLoop" in paths.agent_loops.read_text()


def test_rows_without_pictures_cannot_be_cold_started_on(paths: RunPaths, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"data_source": "embedded", "extra_info": {"index": 0, "question": "Why?"}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    config = config_of(data={"train_files": [str(tmp_path / "rows.parquet")]})
    summary = pipeline.Summary("x", 1)
    with pytest.raises(UserFault, match="no row has a picture"):
        pipeline._cold_policy(config, paths, summary, None)  # type: ignore[arg-type]


def test_without_demonstrations_there_is_no_cold_start(tiny_policy: Path, tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="no demonstration to learn from"):
        run_cold_start(tiny_policy, tmp_path / "out", [([], 1.0)], SECTION, seed=0, log=tmp_path / "log")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b'{"grpo": {', b"\xff\xfe\x00", b"[1]", b'{"grpo": 4}', b"[" * 100_000])
def test_a_damaged_config_of_a_run_is_told_with_its_place(paths: RunPaths, content: bytes) -> None:
    paths.config.write_bytes(content)
    with pytest.raises(UserFault) as caught:
        pin_config(config_of(), paths)
    assert caught.value.what == "the run's config cannot be read: the file is cut off or damaged"
    assert caught.value.where == str(paths.config)
    assert paths.config.read_bytes() == content


def test_damaged_lines_of_the_metrics_are_passed_over(paths: RunPaths) -> None:
    lines = [b'{"step": 1, "reward": 0.5}', b'{"step": 2, "rew', b"\xff\xfe\x00", b"7", b"[]", b"{}", b"[" * 100_000]
    paths.metrics.write_bytes(b"\n".join([*lines, b'{"step": 3}', b'{"step": ']))
    assert [record["step"] for record in read_metrics(paths.metrics)] == [1, 3]


def test_a_damaged_log_of_the_cold_start_shows_its_last_whole_line(paths: RunPaths) -> None:
    pin_config(config_of(), paths)
    paths.cold_log.write_bytes(b'{"step": 100, "loss": 2.0}\n7\n{"step": \xff\n')
    cold = read_view(paths.root).cold
    assert cold == {"step": 100, "loss": 2.0, "steps": 900}
