"""`maestro train export`: the chosen policy, whole, with a card that tells its training and nothing of this machine."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from eval.identity import folder_digest
from maestro.cli.app import run as command
from train.export.card import bare
from train.export.weights import broken, parameters


def weights(folder: Path, value: float, names: tuple[str, ...] = ("model.safetensors",)) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        save_file({name: np.full((2, 3), value, np.float32)}, folder / name)
    return folder


def policy(folder: Path, value: float) -> Path:
    weights(folder, value)
    config = {"model_type": "qwen3_vl", "_name_or_path": "/home/somebody/model"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "README.md").write_text("another model's card")
    return folder


def value_in(folder: Path) -> float:
    return float(load_file(folder / "model.safetensors")["model.safetensors"][0, 0])


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A finished run of 40 steps, checkpoints of 20 and 40, the best of step 20."""
    run = tmp_path / "run"
    policy(run / "policy-before", 0)
    policy(run / "policy", 40)
    policy(run / "policy-best", 20)
    best = {"step": 20, "by": "validation accuracy", "figure": 0.75}
    (run / "policy-best" / "best.json").write_text(json.dumps(best))
    for step in (20, 40):
        place = run / "checkpoints" / f"global_step_{step}"
        names = [f"actor/{part}_world_size_1_rank_0.pt" for part in ("model", "optim", "extra_state")]
        for name in ("data.pt", *names):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(place / name, "w") as file:
                file.writestr("data.pkl", b"x")
        weights(place / "actor" / "huggingface", step)
    config: dict[str, Any] = {
        "name": "first | try", "run": str(run), "seed": 5, "policy": None, "registry": ["/data/here/tools.yaml"],
        "grpo": {"steps": 40, "rate": 1e-06},
        "verl": {"trainer.default_hdfs_dir": "hdfs://node17.cluster:9000/x", "x.path": "/scratch/node17/file.py"},
    }  # fmt: skip
    (run / "config.json").write_text(json.dumps(config))
    (run / "train.json").write_text(json.dumps({"versions": {"verl": "0.9.1"}, "registry": "ab" * 32}))
    lines = [{"step": step, "reward": step / 100, "accuracy": 0.5} for step in (20, 40)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def evaluated(folder: Path, digest: str) -> None:
    arms = {"after": {"kind": "policy", "policy": "after"}, "direct": {"kind": "direct", "policy": "after"}}
    made_of = {"versions": {"policy after": digest}, "config": {"policies": {"after": {}}, "arms": arms}}
    results = {
        "benchmark": "embedded",
        "after": {"accuracy": 0.875, "ci95": [0.8125, 0.9375], "n": 64, "malformed_rate": 0.015625},
        "direct": {"accuracy": 0.1, "n": 64},
    }
    folder.mkdir(exist_ok=True)
    (folder / "eval.json").write_text(json.dumps(made_of))
    (folder / "results.json").write_text(json.dumps(results))


def export(run: Path, out: Path, *more: str) -> str:
    assert command(["train", "export", str(run), "--out", str(out), *more]) == 0
    return (out / "README.md").read_text()


def test_the_last_policy_is_written_whole_with_its_card(trained: Path, tmp_path: Path) -> None:
    card = export(trained, tmp_path / "out" / "p")
    out = tmp_path / "out" / "p"
    assert sorted(p.name for p in out.iterdir()) == ["README.md", "config.json", "model.safetensors", "tokenizer.json"]
    assert json.loads((out / "config.json").read_text()) == {"model_type": "qwen3_vl"}
    assert value_in(out) == 40
    assert "# first \\| try" in card
    for line in (
        "| update steps | 40 |", "| parameters | 6 |", f"| registry | SHA-256 {'ab' * 32} |", "| grpo.rate | 1e-06 |",
        "| verl | 0.9.1 |", "| registry | tools.yaml |", "| reward of the training rollouts | 0.400 |",
        "| verl.x.path | file.py |", "| verl.trainer.default_hdfs_dir | (address) |",
    ):  # fmt: skip
        assert line in card
    for place in (str(tmp_path), "node17", "/scratch", "/data", "/home"):
        assert place not in card
    assert [p.name for p in out.parent.iterdir()] == ["p"]


def test_a_step_or_the_best_can_be_chosen(trained: Path, tmp_path: Path) -> None:
    assert "| update steps | 20 |" in export(trained, tmp_path / "a", "--step", "20")
    assert "| chosen as the best by | validation accuracy, 0.750 |" in export(trained, tmp_path / "b", "--best")
    for name in ("a", "b"):
        assert value_in(tmp_path / name) == 20
        assert (tmp_path / name / "tokenizer.json").exists()
    assert not (tmp_path / "b" / "best.json").exists()


def test_measured_figures_are_quoted_for_the_policy_they_belong_to_only(trained: Path, tmp_path: Path) -> None:
    evaluated(trained, folder_digest(trained / "policy")[:12])
    card = export(trained, tmp_path / "last")
    assert "On embedded:" in card
    assert "| accuracy | 0.875 | 0.812 to 0.938 | 64 |" in card
    assert "| malformed share | 0.016 | - | 64 |" in card
    assert "0.100" not in card  # the arm that was made to answer directly
    assert "0.875" not in export(trained, tmp_path / "best", "--best")
    evaluated(tmp_path / "eval", folder_digest(trained / "policy-best")[:12])
    assert "0.875" in export(trained, tmp_path / "best2", "--best", "--results", str(tmp_path / "eval"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--step", "30"), "no complete checkpoint of step 30; kept: 20, 40"),
        (("--step", "20", "--best"), "--step and --best name two policies"),
        (("--results", "nowhere"), "no evaluation of this policy"),
    ],
)
def test_what_the_run_does_not_hold_is_refused(
    trained: Path, tmp_path: Path, words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["train", "export", str(trained), "--out", str(tmp_path / "out"), *words]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_half_written_policy_and_a_folder_in_use_are_refused(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    assert command(["train", "export", str(trained), "--out", str(tmp_path / "mine")]) == 2
    assert "the folder is not empty" in capsys.readouterr().err
    file = trained / "policy" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    assert command(["train", "export", str(trained), "--out", str(tmp_path / "out")]) == 2
    assert "the policy is not whole: model.safetensors is cut" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_an_unfinished_run_gives_its_newest_checkpoint(trained: Path, tmp_path: Path) -> None:
    for file in (trained / "policy").iterdir():
        file.unlink()
    assert "| update steps | 40 |" in export(trained, tmp_path / "out")
    assert value_in(tmp_path / "out") == 40


def test_shards_are_counted_and_missed(tmp_path: Path) -> None:
    names = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    folder = weights(tmp_path / "w", 1, names)
    index = {"weight_map": {name: name for name in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert (broken(folder), parameters(folder)) == ("", 12)
    (folder / names[1]).unlink()
    assert broken(folder) == f"{names[1]} is missing, which model.safetensors.index.json names"
    (folder / names[0]).write_bytes(b"no")
    assert broken(folder) == f"{names[0]} is no safetensors file"
    assert broken(tmp_path) == "it holds no safetensors weights"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/me/model", "model"), ("~/x/y.yaml", "y.yaml"), ("../up/z", "z"), ("C:\\data\\m", "m"),
        ("http://host:8000/v1", "(address)"), ("configs/registry/a.yaml", "configs/registry/a.yaml"),
        ("ray,/mnt/disk/a and http://h/x", "ray,a and (address)"), ("Qwen/Qwen3", "Qwen/Qwen3"), ("1e-06", "1e-06"),
    ],
)  # fmt: skip
def test_places_become_last_names(text: str, shown: str) -> None:
    assert bare(text) == shown
