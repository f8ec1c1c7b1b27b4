"""The best policy so far is kept beside the last one; older checkpoints go."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from train import checkpoints
from train.best_policy import figure_of, keep_best, read_best
from train.config import CheckpointSection
from train.paths import RunPaths

VALIDATED = CheckpointSection.model_validate({"every": 20, "validate_every": 20})
UNVALIDATED = CheckpointSection.model_validate({"every": 4, "validate_every": 0})


def step(number: int, accuracy: float | None = None, reward: float = 0.0) -> dict[str, Any]:
    record: dict[str, Any] = {"step": number, "reward": reward}
    return record if accuracy is None else record | {"validation": {"accuracy": accuracy}}


def save(folder: Path, number: int, weights: bytes | None = b"w") -> None:
    place = folder / f"global_step_{number}"
    names = [f"actor/{part}_world_size_1_rank_0.pt" for part in ("model", "optim", "extra_state")]
    for name in ("data.pt", *names):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place / name, "w") as file:
            file.writestr("data.pkl", b"x")
    if weights is not None:
        (place / "actor" / "huggingface").mkdir()
        (place / "actor" / "huggingface" / "model.safetensors").write_bytes(weights)


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    found = RunPaths.at(tmp_path)
    found.cold.mkdir()
    (found.cold / "config.json").write_text("{}")
    return found


def test_a_policy_is_kept_until_a_better_one_comes(paths: RunPaths) -> None:
    history: list[dict[str, Any]] = []
    kept = []
    for number, accuracy in ((20, 0.5), (40, 0.8), (60, 0.8), (80, 0.7)):
        save(paths.checkpoints, number, b"weights of %d" % number)
        history.append(step(number, accuracy))
        kept.append(keep_best(history[-1], history, VALIDATED, paths, paths.cold))
    assert kept == [True, True, False, False]
    assert read_best(paths.best) == {"step": 40, "by": "validation accuracy", "figure": 0.8}
    assert (paths.best / "model.safetensors").read_bytes() == b"weights of 40"
    assert sorted(p.name for p in paths.best.iterdir()) == ["best.json", "config.json", "model.safetensors"]


def test_a_step_that_is_played_again_after_a_break_replaces_its_own_policy(paths: RunPaths) -> None:
    save(paths.checkpoints, 20, b"first")
    keep_best(step(20, 0.5), [], VALIDATED, paths, paths.cold)
    (paths.checkpoints / "global_step_20" / "actor" / "huggingface" / "model.safetensors").write_bytes(b"second")
    assert keep_best(step(20, 0.4), [], VALIDATED, paths, paths.cold)
    assert (paths.best / "model.safetensors").read_bytes() == b"second"


def test_without_validation_the_rewards_that_led_there_decide() -> None:
    history = [step(number, reward=reward) for number, reward in enumerate((0.0, 0.25, 0.5, 0.75, 1.0), 1)]
    assert figure_of(history[-1], history, UNVALIDATED) == ("training reward", 0.625)  # steps 2 to 5
    assert figure_of(history[-1], history, VALIDATED) is None  # this run waits for a validation
    assert figure_of({"step": 9, "reward": None}, [], UNVALIDATED) is None


def test_a_step_without_a_whole_checkpoint_keeps_nothing(paths: RunPaths) -> None:
    assert not keep_best(step(20, 0.5), [], VALIDATED, paths, paths.cold)
    save(paths.checkpoints, 40, None)
    with pytest.raises(FileNotFoundError, match="holds no weights"):
        keep_best(step(40, 0.5), [], VALIDATED, paths, paths.cold)
    assert not paths.best.exists()


def test_a_full_disk_leaves_the_best_that_was_there(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    save(paths.checkpoints, 20, b"good")
    keep_best(step(20, 0.5), [], VALIDATED, paths, paths.cold)
    save(paths.checkpoints, 40)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("train.checkpoints.shutil.copy2", full)
    with pytest.raises(OSError, match="No space left"):
        keep_best(step(40, 0.9), [], VALIDATED, paths, paths.cold)
    assert (paths.best / "model.safetensors").read_bytes() == b"good"
    assert [p.name for p in paths.root.iterdir() if "partial" in p.name] == []


def test_checkpoints_older_than_the_last_ones_go_and_half_written_newer_ones_stay(paths: RunPaths) -> None:
    for number in (20, 40, 60):
        save(paths.checkpoints, number)
    (paths.checkpoints / "global_step_10" / "actor").mkdir(parents=True)  # what verl leaves of one it removed
    (paths.checkpoints / "global_step_80" / "actor").mkdir(parents=True)  # being written
    assert checkpoints.keep_last(paths.checkpoints, 2) == [10, 20]
    assert sorted(p.name for p in paths.checkpoints.iterdir()) == ["global_step_40", "global_step_60", "global_step_80"]
    assert checkpoints.keep_last(paths.root, 2) == []
