"""`maestro data prepare` and `maestro data inspect`, as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maestro.cli.app import run
from tests.train.made_mixture import encoded, make_mixture, photo, rows_of, write_rows


def prepare(file: Path, *words: str) -> int:
    return run(["data", "prepare", str(file), "--data-root", str(file.parent / "data"), *words])


def ids(file: Path) -> list[str]:
    return [row["id"] for row in pq.read_table(file)["extra_info"].to_pylist()]


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_mixture_holds_what_was_asked_for_in_a_seeded_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = make_mixture(tmp_path / "a"), make_mixture(tmp_path / "b")
    assert prepare(first, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert {name: (one["train"], one["validation"]) for name, one in summary["sources"].items()} == {
        "chartqa": (8, 2), "tallyqa": (8, 2),
    }  # fmt: skip
    assert summary["leak_check"] == {"benchmarks": {"ocrbench": 10}, "without": []}
    assert prepare(second) == 0
    assert prepare(make_mixture(tmp_path / "c", seed=1)) == 0
    train = ids(tmp_path / "a/out/train.parquet")
    assert train == ids(tmp_path / "b/out/train.parquet")
    assert train != ids(tmp_path / "c/out/train.parquet")
    assert not set(train) & set(ids(tmp_path / "a/out/validation.parquet"))
    row = pq.read_table(tmp_path / "a/out/train.parquet").to_pylist()[0]
    assert set(row) == {"data_source", "prompt", "images", "ability", "reward_model", "extra_info"}
    assert row["extra_info"]["split"] == "train"
    assert row["prompt"][-1]["content"].startswith("<image>")
    assert row["images"][0]["bytes"] == encoded(photo(int(row["extra_info"]["answer"])))


def leak_one(file: Path) -> None:
    """Every picture of tallyqa is evaluated on, smaller and more compressed."""
    rows = rows_of(range(100, 130), lambda i: f"Anything {i}?")
    small = [(row, encoded(photo(row["id"]).resize((64, 43)), quality=40)) for row, _ in rows]
    write_rows(file.parent / "data/ocrbench", small[:12])


def test_leaks_are_listed_and_nothing_is_written_until_they_are_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = make_mixture(tmp_path / "m")
    leak_one(file)
    assert prepare(file) == 2
    said = capsys.readouterr().err
    assert "held by evaluation benchmarks too" in said
    assert "picture alike" in said
    out = tmp_path / "m/out"
    assert not (out / "train.parquet").exists()
    listed = lines(out / "leaks.jsonl")
    assert listed
    assert {one["row"].rpartition("/")[2] for one in listed} == {
        one["benchmark_row"].rpartition("/")[2] for one in listed
    }
    assert prepare(file, "--drop-leaks") == 0
    left = ids(out / "train.parquet") + ids(out / "validation.parquet")
    assert len(left) == 20
    assert not {f"tallyqa/{i}" for i in range(100, 112)} & set(left)


def test_rows_that_can_not_be_used_are_listed_with_their_reasons(tmp_path: Path) -> None:
    file = make_mixture(tmp_path / "m", most_faulty=0.5, max_pixels=10_000)
    data = tmp_path / "m/data/chartqa"
    rows = rows_of(range(30), lambda i: f"What is the value of bar {i}?")
    rows[3] = (rows[3][0], b"broken")
    rows[4] = ({**rows[4][0], "answer": ""}, rows[4][1])
    rows[5] = (rows[5][0], encoded(photo(5, (400, 300))))
    write_rows(data, [*rows, ({**rows[0][0], "id": 77}, rows[0][1])])
    assert prepare(file, "sources.chartqa.rows=20") == 0
    reasons = {one["row"].rpartition("/")[2]: one["reason"] for one in lines(tmp_path / "m/out/skipped.jsonl")}
    assert reasons.pop("0", reasons.pop("77", None)) == "asked twice"
    assert reasons.pop("3") == "bad image"
    assert reasons.pop("5") == "bad image"
    assert list(reasons.values()) == ["no gold answer"]


def test_a_source_of_mostly_broken_pictures_is_given_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = make_mixture(tmp_path / "m")
    write_rows(tmp_path / "m/data/chartqa", [(row, b"x") for row, _ in rows_of(range(30), str)])
    assert prepare(file) == 2
    said = capsys.readouterr().err
    assert "30 of 30 rows can't be used, more than 5 %" in said
    assert "source chartqa" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sources.chartqa.rows=100"], "too few rows that can be used: chartqa: 28 of 100 training rows"),
        (["sources.chartqa.benchmark=nowhere"], "nowhere"),
        (["sources.chartqa.data_root=missing"], "no such folder or file"),
        (["leaks.without=[\"oclbench\"]"], "did you mean 'ocrbench'?"),
        (["max_prompt_tokens=100"], "max_prompt_tokens needs 'processor'"),
        (["processor=/nowhere/policy"], "no processor that counts text and pictures"),
        (["sources.chartqa.rws=3"], "did you mean 'rows'?"),
    ],
)  # fmt: skip
def test_what_can_not_be_done_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert prepare(make_mixture(tmp_path / "m"), *words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not (tmp_path / "m/out/train.parquet").exists()


def test_a_source_with_other_columns_is_refused_with_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = make_mixture(tmp_path / "m")
    (tmp_path / "m/data/tallyqa/samples.jsonl").write_text(
        '{"id": 1, "questions": "?", "answer": "1", "image": "1.jpg"}\n'
    )
    assert prepare(file) == 2
    assert "did you mean 'questions'?" in capsys.readouterr().err


def test_a_source_that_reads_what_is_evaluated_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = make_mixture(tmp_path / "m", sources={"slake": {"benchmark": "slake", "rows": 5}}, leaks={})
    assert prepare(file) == 2
    assert "reads the rows that 'slake' is evaluated on: BoKelvin/SLAKE, split test" in capsys.readouterr().err


def test_the_folder_of_another_mixture_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = make_mixture(tmp_path / "m")
    assert prepare(file) == 0
    assert prepare(file, "seed=5") == 2
    assert "the work of another mixture" in capsys.readouterr().err
    assert prepare(file, "seed=5", "--restart") == 0


def test_work_that_was_measured_otherwise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = make_mixture(tmp_path / "m")
    with monkeypatch.context() as before:
        before.setattr("maestro.cli.data_sources.MEASURED", 1)
        assert prepare(file) == 0
    assert prepare(file) == 2
    assert "start anew with --restart" in capsys.readouterr().err
    assert prepare(file, "--restart") == 0


KILLED = """
import os, signal, sys
from train.data import prepare, workspace
from maestro.cli.app import run
prepare.SHARD = 5
store, left = workspace.Workspace.store, int(sys.argv[1])
def dying(self, *args, **kwargs):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    store(self, *args, **kwargs)
workspace.Workspace.store = dying
sys.exit(run(sys.argv[2:]))
"""


def test_a_killed_preparation_goes_on_and_takes_the_same_rows(tmp_path: Path) -> None:
    whole, killed = make_mixture(tmp_path / "whole"), make_mixture(tmp_path / "killed")
    assert prepare(whole) == 0
    words = ["data", "prepare", str(killed), "--data-root", str(killed.parent / "data")]
    end = subprocess.run([sys.executable, "-c", KILLED, "7", *words], env=os.environ, check=False, timeout=300)
    assert end.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed/out/train.parquet").exists()
    assert prepare(killed) == 0
    for name in ("train", "validation"):
        assert ids(tmp_path / f"killed/out/{name}.parquet") == ids(tmp_path / f"whole/out/{name}.parquet")


def test_inspect_shows_rows_as_they_will_be_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare(make_mixture(tmp_path / "m", prompt_style="compact")) == 0
    capsys.readouterr()
    assert run(["data", "inspect", str(tmp_path / "m/out"), "--limit", "2", "--from", "1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["rows"] == 16
    assert "<search>" in shown["system"]
    assert [row["number"] for row in shown["shown"]] == [1, 2]
    assert shown["shown"][0]["images"] == [[96, 64]]
    assert run(["data", "inspect", str(tmp_path / "m/out"), "--limit", "1"]) == 0
    shown = capsys.readouterr().out
    assert "images: 96x64" in shown
    assert "prompt tokens: not measured (give --processor FOLDER, for example runs/demo/policy)" in shown


def test_inspect_refuses_a_file_of_other_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"prompt": ["a"], "image": ["b"]}), tmp_path / "other.parquet")
    assert run(["data", "inspect", str(tmp_path / "other.parquet")]) == 2
    assert (
        "no column data_source, images, reward_model, extra_info; the file has image, prompt" in capsys.readouterr().err
    )


def test_the_papers_mixture_holds_9200_rows_of_its_seven_data_sets() -> None:
    from eval.yaml_config import load_config
    from maestro.cli.data_sources import specs_of
    from train.data.config import DataConfig

    root = Path(__file__).resolve().parents[2]
    config = load_config(DataConfig, root / "configs/data/paper.yaml")
    assert list(config.sources) == ["chartqa", "geometry3k", "zwz_rl_vqa", "tallyqa", "slake", "microvqa", "msearthmcq"]
    assert sum(source.rows for source in config.sources.values()) == 9200
    specs = specs_of(config, root / "configs/data", None, None)
    splits = {name: spec.hub.split for name, (spec, _) in specs.sources.items() if spec.hub}
    assert set(splits.values()) == {"train"}
    assert len(specs.benchmarks) == len(list((root / "configs/benchmarks").glob("*.yaml")))
    assert specs.sources["microvqa"][0].where["part"] == ("1", "2", "3")
    assert specs.benchmarks["microvqa"][0].where["part"] == ("0",)
