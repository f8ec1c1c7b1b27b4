"""Going on from another run's checkpoint: found, checked, and left behind once the run has one of its own."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from registry.errors import UserFault
from train.config import TrainConfig
from train.identity import pin_config
from train.paths import RunPaths
from train.pipeline import train
from train.resume import check_source, model_difference, resume_settings, source_of, take_cold_policy

MODEL = {"architectures": ["Q"], "text_config": {"hidden_size": 64, "dtype": "float32"}, "eos_token_id": 2}
WORDS = {"added_tokens": [{"id": 2, "content": "<end>"}], "model": {"vocab": {"a": 0, "b": 1}}}


def model(folder: Path, config: dict[str, Any] = MODEL, words: dict[str, Any] | None = WORDS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if words is not None:
        (folder / "tokenizer.json").write_text(json.dumps(words))
    return folder


def save(run: Path, step: int, ranks: int = 1) -> Path:
    place = run / "checkpoints" / f"global_step_{step}"
    parts = ("model", "optim", "extra_state")
    names = [f"actor/{part}_world_size_{ranks}_rank_{rank}.pt" for part in parts for rank in range(ranks)]
    for name in ("data.pt", *names):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place / name, "w") as file:
            file.writestr("data.pkl", b"x")
    model(place / "actor" / "huggingface")
    return place


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A run with checkpoints of steps 20 and 40."""
    run = tmp_path / "other"
    for step in (20, 40):
        save(run, step)
    model(run / "policy-before")
    return run


def begun(tmp_path: Path, resume: Path | str, **fields: Any) -> tuple[TrainConfig, RunPaths]:
    config = TrainConfig.model_validate({"run": str(tmp_path / "run"), "resume": str(resume), **fields})
    return config, RunPaths.at(config.run)


@pytest.mark.parametrize(("place", "step"), [("", 40), ("checkpoints", 40), ("checkpoints/global_step_20", 20)])
def test_a_run_its_folder_of_checkpoints_or_one_of_them_can_be_named(
    tmp_path: Path, other: Path, place: str, step: int
) -> None:
    config, paths = begun(tmp_path, other / place)
    check_source(config, paths)
    assert resume_settings(config, paths) == {
        "trainer.resume_mode": "resume_path",
        "trainer.resume_from_path": str(other / "checkpoints" / f"global_step_{step}"),
    }


def test_with_a_checkpoint_of_its_own_a_run_goes_on_from_that(tmp_path: Path, other: Path) -> None:
    config, paths = begun(tmp_path, other)
    save(paths.root, 60)
    assert source_of(config, paths) is None
    assert resume_settings(config, paths) == {"trainer.resume_mode": "auto"}
    assert resume_settings(*begun(tmp_path, "never")) == {"trainer.resume_mode": "disable"}


@pytest.mark.parametrize("place", ["nowhere", "policy-before", "checkpoints/global_step_30"])
def test_a_place_without_a_complete_checkpoint_is_refused(tmp_path: Path, other: Path, place: str) -> None:
    (other / "checkpoints" / "global_step_30" / "actor").mkdir(parents=True)
    with pytest.raises(UserFault) as caught:
        check_source(*begun(tmp_path, other / place))
    assert caught.value.what == "no complete checkpoint to go on from"
    assert caught.value.where == f"resume: {other / place}"


@pytest.mark.parametrize(
    ("config", "words", "says"),
    [
        ({**MODEL, "text_config": {"hidden_size": 32}}, WORDS, "text_config.hidden_size is 64 there and 32 here"),
        (MODEL, {**WORDS, "model": {"vocab": {"b": 0, "a": 1}}}, "its tokenizer has another vocabulary"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(
    tmp_path: Path, other: Path, config: dict[str, Any], words: dict[str, Any], says: str
) -> None:
    policy = model(tmp_path / "policy", config, words)
    with pytest.raises(UserFault) as caught:
        check_source(*begun(tmp_path, other, policy=str(policy)))
    assert caught.value.what == f"a checkpoint of another model: {says}"


def test_what_only_versions_and_ways_of_running_decide_is_the_same_model(tmp_path: Path) -> None:
    one = model(tmp_path / "a", {**MODEL, "text_config": {"hidden_size": 64, "dtype": "bfloat16", "new": 1}})
    two = model(tmp_path / "b", {**MODEL, "eos_token_id": None, "transformers_version": "5"}, None)
    assert model_difference(one, two) == ""
    assert model_difference(one, tmp_path / "nowhere") == f"no model config in {tmp_path / 'nowhere'}"


def test_other_processes_and_too_few_steps_are_refused(tmp_path: Path, other: Path) -> None:
    with pytest.raises(UserFault, match="the checkpoint is of step 40, and the run ends at step 40"):
        check_source(*begun(tmp_path, other, grpo={"steps": 40}))
    with pytest.raises(UserFault, match="a checkpoint of 4 processes, and this run would have 1"):
        check_source(*begun(tmp_path, save(tmp_path / "big", 20, ranks=4)))


class NothingBegins:
    """Who is told of a phase fails the test."""

    def phase(self, name: str, total: int) -> None:
        raise AssertionError(name)

    def advance(self, done: int, note: str = "") -> None: ...

    def step(self, record: dict[str, Any], steps: int) -> None: ...

    def warn(self, text: str) -> None: ...


@pytest.mark.parametrize(("before", "now", "said"), [(1, 2, "1 process"), (2, 1, "2 processes")])
def test_a_run_that_goes_on_with_more_or_fewer_processes_is_refused_before_anything_starts(
    tmp_path: Path, before: int, now: int, said: str
) -> None:
    config, paths = begun(tmp_path, "auto", cluster={"gpus_per_node": before})
    paths.root.mkdir()
    pin_config(config, paths)
    checkpoint = save(paths.root, 20, ranks=before)
    check_source(config, paths)
    other, _ = begun(tmp_path, "auto", cluster={"gpus_per_node": now})
    with pytest.raises(UserFault) as caught:
        train(other, lambda *_: None, NothingBegins())
    assert (caught.value.what, caught.value.where, caught.value.fix) == (
        f"a checkpoint of {said}, and this run would have {now}",
        str(checkpoint),
        f"train with {said} (cluster.nodes x cluster.gpus_per_node), or begin another run from the exported policy "
        "(`maestro train export`, then policy: FOLDER), with a new optimiser",
    )
    assert json.loads(paths.config.read_text())["cluster"]["gpus_per_node"] == before


def test_as_many_processes_on_other_nodes_can_take_another_runs_checkpoint(tmp_path: Path) -> None:
    checkpoint = save(tmp_path / "other", 20, ranks=2)
    model(tmp_path / "other" / "policy-before")
    config, paths = begun(tmp_path, checkpoint, cluster={"nodes": 2}, platform="cuda")
    check_source(config, paths)
    assert source_of(config, paths) == checkpoint


def test_the_policy_before_rl_comes_along(tmp_path: Path, other: Path) -> None:
    config, paths = begun(tmp_path, other)
    paths.root.mkdir()
    assert take_cold_policy(config, paths)
    assert sorted(p.name for p in paths.cold.iterdir()) == ["config.json", "tokenizer.json"]
    assert not take_cold_policy(*begun(tmp_path / "x", "auto"))


def test_without_a_policy_before_rl_one_must_be_named(tmp_path: Path) -> None:
    save(tmp_path / "bare", 20)
    with pytest.raises(UserFault, match="no policy before RL to take along"):
        check_source(*begun(tmp_path, tmp_path / "bare"))
