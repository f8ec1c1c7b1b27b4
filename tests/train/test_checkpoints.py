"""verl's checkpoints: complete ones are used, half-written ones passed over."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from train.checkpoints import TRACKER, complete_steps, export, is_complete, repair_tracker


def archive(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("data.pkl", b"x" * 500)


def checkpoint(folder: Path, step: int, ranks: int = 1) -> Path:
    place = folder / f"global_step_{step}"
    archive(place / "data.pt")
    for rank in range(ranks):
        for part in ("model", "optim", "extra_state"):
            archive(place / "actor" / f"{part}_world_size_{ranks}_rank_{rank}.pt")
    return place


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


PARTS = ["data.pt", *(f"actor/{part}_world_size_1_rank_0.pt" for part in ("model", "optim", "extra_state"))]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("harm", [Path.unlink, cut, lambda path: path.write_bytes(b"")], ids=["absent", "cut", "empty"])
def test_a_checkpoint_with_a_part_missing_or_half_written_is_incomplete(tmp_path: Path, part: str, harm) -> None:
    place = checkpoint(tmp_path, 20)
    assert is_complete(place)
    harm(place / part)
    assert not is_complete(place)


def test_torchs_own_files_count_as_whole(tmp_path: Path) -> None:
    import torch

    place = checkpoint(tmp_path, 20)
    torch.save({"step": 20}, place / "data.pt")
    assert is_complete(place)


def test_every_rank_must_be_there(tmp_path: Path) -> None:
    place = checkpoint(tmp_path, 20, ranks=4)
    assert is_complete(place)
    (place / "actor" / "optim_world_size_4_rank_3.pt").unlink()
    assert not is_complete(place)


def test_only_complete_checkpoints_count_in_the_order_of_their_steps(tmp_path: Path) -> None:
    for step in (100, 20, 40):
        checkpoint(tmp_path, step)
    (tmp_path / "global_step_60" / "actor").mkdir(parents=True)
    (tmp_path / "global_step_80.partial").mkdir()
    cut(tmp_path / "global_step_40" / "data.pt")
    assert complete_steps(tmp_path) == [20, 100]
    assert complete_steps(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "tracked", ["40", "", "6", "four", None], ids=["half-written", "empty", "cut", "no number", "none"]
)
def test_the_tracker_is_pointed_at_the_newest_complete_checkpoint(tmp_path: Path, tracked: str | None) -> None:
    checkpoint(tmp_path, 20)
    cut(checkpoint(tmp_path, 40) / "actor" / "optim_world_size_1_rank_0.pt")
    if tracked is not None:
        (tmp_path / TRACKER).write_text(tracked)
    assert repair_tracker(tmp_path) == 20
    assert (tmp_path / TRACKER).read_text() == "20"
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == [TRACKER]


def test_a_kill_between_checkpoint_and_tracker_costs_no_step(tmp_path: Path) -> None:
    checkpoint(tmp_path, 20)
    checkpoint(tmp_path, 40)
    (tmp_path / TRACKER).write_text("20")
    assert repair_tracker(tmp_path) == 40


def test_without_a_complete_checkpoint_the_tracker_goes(tmp_path: Path) -> None:
    (tmp_path / TRACKER).write_text("20")
    assert repair_tracker(tmp_path) == 0
    assert not (tmp_path / TRACKER).exists()


@pytest.fixture
def start(tmp_path: Path) -> Path:
    folder = tmp_path / "start"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("words")
    (folder / "model.safetensors").write_bytes(b"old")
    return folder


def test_export_is_the_checkpoints_weights_with_the_processor(tmp_path: Path, start: Path) -> None:
    weights = checkpoint(tmp_path, 20) / "actor" / "huggingface"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"new")
    out = tmp_path / "policy"
    export(tmp_path, 20, out, start)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == {
        "config.json": b"{}", "tokenizer.json": b"words", "model.safetensors": b"new",
    }  # fmt: skip
    (weights / "model.safetensors").write_bytes(b"newer")
    export(tmp_path, 20, out, start)
    assert (out / "model.safetensors").read_bytes() == b"newer"
    assert not (tmp_path / "policy.partial").exists()


def test_export_without_weights_leaves_what_was_there(tmp_path: Path, start: Path) -> None:
    checkpoint(tmp_path, 20)
    out = tmp_path / "policy"
    out.mkdir()
    (out / "model.safetensors").write_bytes(b"kept")
    with pytest.raises(FileNotFoundError, match="holds no weights"):
        export(tmp_path, 20, out, start)
    assert (out / "model.safetensors").read_bytes() == b"kept"


def test_an_export_that_breaks_off_leaves_no_policy(tmp_path: Path, start: Path, monkeypatch) -> None:
    weights = checkpoint(tmp_path, 20) / "actor" / "huggingface"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"new")
    out = tmp_path / "policy"

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("train.checkpoints.shutil.copy2", full)
        with pytest.raises(OSError, match="No space left"):
            export(tmp_path, 20, out, start)
    assert not out.exists()
    export(tmp_path, 20, out, start)  # the half of it that lies there is no hindrance
    assert sorted(p.name for p in out.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
