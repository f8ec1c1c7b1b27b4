"""From our config to verl's: literals, environment, and settings that verl's own schema takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from train.config import TrainConfig
from train.paths import RunPaths
from train.verl_config import environment, overrides, verl_settings

PARSER = OverridesParser.create()


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "null"), (True, "true"), (3, "3"), (1e-5, "1e-05"), ("auto", "'auto'"), ("1e-5", "'1e-5'"),
        (["console", 2], "['console',2]"), ((), "[]"), ("it's", r"'it\'s'"), ("a\\b", r"'a\b'"), ("a\\", r"'a\\'"),
        ({"a": {"b": "x"}, "c": None}, "{a:{b:'x'},c:null}"),
    ],
)  # fmt: skip
def test_literals_are_written_as_hydra_reads_them(value: Any, literal: str) -> None:
    assert overrides({"key.sub": value}) == [f"key.sub={literal}"]


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])))
def test_any_text_comes_back_from_hydras_parser(text: str) -> None:
    assert PARSER.parse_override(overrides({"key": text})[0]).value() == text


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    return RunPaths.at(tmp_path_factory.mktemp("a run, it's [odd]"))


def test_every_setting_composes_against_the_installed_verl(paths: RunPaths) -> None:
    extra = {"trainer.nnodes": 2, "ray_kwargs.ray_init.num_gpus": 3, "data.train_batch_size": 7}
    config = TrainConfig.model_validate({"verl": extra})
    settings = verl_settings(config, paths, Path("/policies/it's mine"))
    with initialize_config_module("verl.trainer.config", version_base=None):
        composed = compose("ppo_trainer", overrides=overrides(settings))
    for key, value in settings.items():
        got = OmegaConf.select(composed, key.removeprefix("+"))
        if key != "+ray_kwargs.ray_init.num_gpus":
            assert got == (list(value) if isinstance(value, list | tuple) else value), key
    assert composed.actor_rollout_ref.model.path == "/policies/it's mine"
    assert (composed.trainer.nnodes, composed.ray_kwargs.ray_init.num_gpus, composed.data.train_batch_size) == (2, 3, 7)


def test_the_same_settings_without_the_host_part_compose_for_gpus(paths: RunPaths) -> None:
    settings = verl_settings(TrainConfig.model_validate({"platform": "cuda"}), paths, Path("/policy"))
    with initialize_config_module("verl.trainer.config", version_base=None):
        composed = compose("ppo_trainer", overrides=overrides(settings))
    assert composed.trainer.device == "cuda"
    assert not any("cpu" in str(value) for value in settings.values())


def test_what_the_config_says_reaches_verl(paths: RunPaths) -> None:
    config = TrainConfig.model_validate(
        {
            "seed": 5,
            "grpo": {"steps": 7, "prompts": 4, "samples": 6},
            "checkpoint": {"validate_every": 0},
            "resume": "never",
        }
    )
    settings = verl_settings(config, paths, Path("/policy"))
    assert settings["data.seed"] == settings["actor_rollout_ref.rollout.seed"] == 5
    assert settings["actor_rollout_ref.rollout.n"] == 6
    assert settings["actor_rollout_ref.actor.ppo_mini_batch_size"] == settings["data.train_batch_size"] == 4
    assert (settings["trainer.test_freq"], settings["trainer.resume_mode"]) == (7, "disable")
    assert settings["actor_rollout_ref.rollout.max_num_seqs"] == 24
    # 128 + 160 tokens, in blocks of 32
    assert settings["actor_rollout_ref.rollout.max_model_len"] == 288


def test_sampling_and_training_use_one_temperature_and_no_cut_of_the_distribution(paths: RunPaths) -> None:
    settings = verl_settings(TrainConfig.model_validate({"grpo": {"temperature": 0.6}}), paths, Path("/policy"))
    rollout = "actor_rollout_ref.rollout."
    assert settings[rollout + "temperature"] == settings[rollout + "val_kwargs.temperature"] == 0.6
    assert (settings[rollout + "top_p"], settings[rollout + "top_k"]) == (1.0, -1)


def test_the_environment_names_this_attempts_file_and_the_gaps_limit(paths: RunPaths) -> None:
    config = TrainConfig.model_validate({"grpo": {"max_gap": 0.002}})
    env = environment(config, paths, 3)
    assert env["VERL_FILE_LOGGER_PATH"] == str(paths.root / "logs" / "verl-03.jsonl")
    assert (env["MAESTRO_MAX_GAP"], env["VERL_PLATFORM"]) == ("0.002", "cpu")
    assert "VERL_PLATFORM" not in environment(TrainConfig.model_validate({"platform": "cuda"}), paths, 1)
