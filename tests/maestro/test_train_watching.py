"""`maestro train watch`, `report` and `analyse` on a small run folder, as they are typed."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from experts.images import load_picture
from maestro.cli.app import run
from maestro.cli.train_report import LivePages
from maestro.cli.train_watch import sparkline
from train.rollout_log import RolloutRecord

EVIL = "<script>alert(1)</script> & how many?"


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 30, 30)).save(buffer, "PNG")
    return buffer.getvalue()


def trajectory(row: str) -> dict[str, Any]:
    picture = load_picture(png())
    seen = {
        "text": "<b>4</b>", "outcome": "ok", "expert": "A", "skill": "S", "subskill": "Count", "reason": "only one",
        "latency_s": 0.2, "usage": {}, "cached": False, "error": None,
    }  # fmt: skip
    search = {"type": "search", "expert": "A", "skill": "S", "query": EVIL}
    turns = [
        {"text": "<search> A@@S: q</search>", "action": search, "observation": seen, "dropped_text": ""},
        {"text": "<answer> 4</answer>", "action": {"type": "answer", "text": "4"}, "observation": None},
    ]
    return {
        "version": 1, "id": f"{row}#0", "row_id": row, "benchmark": "embedded", "group": "bars", "question": EVIL,
        "answer": "4", "choices": None, "ground_truth": "4", "sample": 0, "turns": turns, "stop": "answered",
        "pictures": [{"sha256": picture.sha256, "width": 40, "height": 30}], "valid": True, "error": None,
        "counts": {"calls": 1, "malformed": 0}, "timings": {"total_s": 0.4},
    }  # fmt: skip


def rollout(step: int, sample: int = 0, **fields: Any) -> str:
    usual: dict[str, Any] = {
        "step": step, "attempt": 1, "split": "train", "row": "r1", "index": 0, "sample": sample, "group": "bars",
        "seed": 7, "valid": True, "reward": 1.0, "answer": 1.0, "format": 0.0, "stop": "answered", "pairs": ("A@@S",),
        "copied": 1, "calls": 1, "malformed": 0, "policy_tokens": 20, "source": "embedded",
        "trajectory": trajectory("r1") if sample == 0 else None,
    }  # fmt: skip
    return RolloutRecord(**usual | fields).line()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of 20 steps that has done 12, with an alarm on step 5 and half of step 13 played."""
    root = tmp_path / "tried"
    (root / "checkpoints").mkdir(parents=True)
    config = {
        "name": "try", "seed": 3, "grpo": {"steps": 20, "prompts": 2, "samples": 2, "max_gap": 1e-4},
        "data": {"train_files": [], "validation_files": []},
    }  # fmt: skip
    (root / "config.json").write_text(json.dumps(config))
    records = [
        {"step": s, "rollouts": 4, "invalid": 0, "reward": s / 10, "accuracy": s / 12, "entropy": 1 / s, "calls": 1.0,
         "malformed": 0.0, "pairs": {"A@@S": 3, "B@@T": 1}, "groups": 2, "groups_flat": 1, "seconds": 2.0,
         "prob_gap": 3e-3 if s == 5 else 1e-6,
         "experts": {"A": {"calls": 4, "failed": 1, "cached": 0, "seconds_p50": 0.2, "seconds_p95": 0.9}}}
        for s in range(1, 13)
    ]  # fmt: skip
    (root / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records) + '{"step": 13, "rew')
    lines = [rollout(s, sample) for s in range(1, 13) for sample in (0, 1)]
    (root / "rollouts.jsonl").write_text("".join(lines) + rollout(13) + rollout(13, split="validation") + '{"step":13,')
    (root / "data").mkdir()
    rows = [{"images": [{"bytes": png(), "path": None}], "extra_info": {"id": "r1", "index": 0}}]
    pq.write_table(pa.Table.from_pylist(rows), root / "data" / "train.parquet")
    return root


def test_watch_tells_how_far_how_fast_and_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "watch", str(folder), "--once"]) == 0
    out = capsys.readouterr().out
    for part in ("try  training  step 12/20  rollouts 1/4  2.0 s/step", "rollout_actor_gap: step 5", "A@@S 75%"):
        assert part in out
    assert "16 s left" in out.replace("\n", " ")


def validated(folder: Path, values: dict[int, float]) -> None:
    """Give steps of the run a validation."""
    path = folder / "metrics.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()[:12]]
    for record in records:
        if record["step"] in values:
            record["validation"] = {"accuracy": values[record["step"]]}
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_watch_shows_the_first_and_the_last_validation_and_a_dash_where_the_newest_step_has_none(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validated(folder, {4: 0.25, 8: 0.75})
    assert run(["train", "watch", str(folder), "--once"]) == 0
    [row] = [line for line in capsys.readouterr().out.splitlines() if "validation: first, last" in line]
    assert row.split()[3:6] == ["0.250", "0.750", "–"]


def test_the_page_shows_the_first_and_the_last_validation_and_says_what_its_cards_are_means_of(folder: Path) -> None:
    validated(folder, {4: 0.25, 12: 0.75})
    assert run(["train", "report", str(folder)]) == 0
    page = (folder / "training.html").read_text()
    row = page.partition("accuracy, validation (first and last)</th>")[2].partition("</tr>")[0]
    assert row == "<td>0.250</td><td>0.750</td><td>0.750</td>"
    assert "<span>reward</span><b>+0.750</b><small>mean of the last 10 steps; +0.550 of the first 10</small>" in page


def test_watch_as_json_is_one_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "watch", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {k: told[k] for k in ("state", "step", "steps", "rollouts", "seconds_a_step", "left_s")} == {
        "state": "training", "step": 12, "steps": 20, "rollouts": [1, 4], "seconds_a_step": 2.0, "left_s": 16.0,
    }  # fmt: skip
    assert [(a["name"], a["first_step"]) for a in told["alarms"]] == [("rollout_actor_gap", 5)]
    assert told["last"]["step"] == 12


def test_watch_shows_a_pause(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pauses").mkdir()
    record = {"seconds": 65.0, "why": "A: unavailable", "waiting": 3, "given_up": False}
    (folder / "pauses" / "host-1.json").write_text(json.dumps(record))
    assert run(["train", "watch", str(folder), "--once"]) == 0
    out = capsys.readouterr().out
    assert "paused for 65 s: A: unavailable; 3 rollouts wait" in out


def test_watch_says_when_a_run_has_gone_quiet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hour_ago = time.time() - 3600
    for name in ("config.json", "metrics.jsonl", "rollouts.jsonl"):
        os.utime(folder / name, (hour_ago, hour_ago))
    assert run(["train", "watch", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "quiet"


@pytest.mark.parametrize("command", ["watch", "report"])
def test_a_folder_without_a_run_is_refused(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", command, str(tmp_path)]) == 2
    assert "no training run here" in capsys.readouterr().err


def test_a_run_without_a_step_has_no_page_yet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "metrics.jsonl").unlink()
    assert run(["train", "report", str(folder)]) == 2
    assert "no training step is recorded yet" in capsys.readouterr().err


def test_the_page_holds_curves_alarms_pictures_and_foreign_text_only_as_text(folder: Path) -> None:
    assert run(["train", "report", str(folder)]) == 0
    page = (folder / "training.html").read_text()
    assert "rollout_actor_gap" in page and "A@@<wbr>S" in page
    assert page.count("data:image/png;base64,") == 2  # curves, and the one picture of all rollouts
    assert "alert(1)" in page and "<script>alert(1)" not in page and "<b>4</b>" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page
    assert [p.name for p in folder.glob(".training*")] == []


def test_the_page_of_a_running_training_is_written_every_so_many_steps(folder: Path) -> None:
    told: list[str] = []
    pages = LivePages(folder, 5, told.append)
    pages.step({"step": 4})
    assert not (folder / "training.html").exists()
    pages.step({"step": 5})
    assert (folder / "training.html").exists()
    (folder / "training.html").unlink()
    pages.write()  # nothing has come since
    assert not (folder / "training.html").exists() and told == []


def test_a_page_that_cannot_be_written_is_told_once_and_hinders_nobody(folder: Path) -> None:
    told: list[str] = []
    (folder / "training.html").mkdir()
    pages = LivePages(folder, 1, told.append)
    for step in (1, 2, 3):
        pages.step({"step": step})
    assert len(told) == 1 and told[0].startswith("training.html is not written any more: ")


def test_analyse_lays_runs_over_each_other_in_one_picture_and_one_table(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "no_format"
    other.mkdir()
    (other / "metrics.jsonl").write_text('{"step": 1, "reward": -0.5, "malformed": 0.25}\n')
    out = tmp_path / "out"
    assert run(["train", "analyse", str(folder), str(other), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(r["run"], r["steps"], r["reward"]) for r in told["runs"]] == [
        ("tried", 12, [0.55, pytest.approx(0.75)]), ("no_format", 1, [-0.5, -0.5]),
    ]  # fmt: skip
    with Image.open(out / "emergence.png") as image:
        assert image.size == (1200, 840)
    with (out / "emergence.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 13
    assert {k: rows[-1][k] for k in ("run", "step", "reward", "entropy", "malformed")} == {
        "run": "no_format", "step": "1", "reward": "-0.5", "entropy": "", "malformed": "0.25",
    }  # fmt: skip


def test_analyse_refuses_a_folder_without_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "analyse", str(tmp_path)]) == 2
    assert "no training step is recorded here" in capsys.readouterr().err


def test_a_sparkline_has_its_lowest_and_highest_block_at_the_ends_of_a_rise() -> None:
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert sparkline([2.0, 2.0]) == "▄▄"
    assert len(sparkline([float(i) for i in range(1000)], 12)) == 12
    assert sparkline([float("nan")]) == ""
