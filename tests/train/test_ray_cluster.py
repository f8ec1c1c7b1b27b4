"""A run on a Ray cluster of its own, and on one that is joined: command, environment, folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from pydantic import ValidationError

from train.config import TrainConfig
from train.grpo import job_command
from train.launch.cluster import own_folder
from train.paths import RunPaths
from train.verl_config import environment, overrides, verl_settings

JOINED = {
    "platform": "cuda",
    "policy": "/policy",
    "data": {"train_files": ["rows/train.parquet"], "validation_files": ["/rows/validation.parquet"]},
    "cluster": {"nodes": 2, "gpus_per_node": 4},
    "ray": {"address": "10.0.0.1:6379"},
}


def made(fields: dict[str, object], tmp_path: Path) -> tuple[list[str], dict[str, str]]:
    return job_command(TrainConfig.model_validate(fields), RunPaths.at(tmp_path), Path("/policy"), 3)


def test_without_an_address_the_command_is_that_of_a_cluster_of_the_runs_own(tmp_path: Path) -> None:
    config, paths = TrainConfig(), RunPaths.at(tmp_path)  # type: ignore[call-arg]
    command, env = job_command(config, paths, Path("/policy"), 3)
    settings = overrides(verl_settings(config, paths, Path("/policy")))
    assert command == [sys.executable, "-m", "verl.trainer.main_ppo", *settings]
    assert env == environment(config, paths, 3)
    assert not any("ray_init.address" in word for word in command)


def test_a_joined_cluster_gets_the_environment_and_whole_paths_through_ray(tmp_path: Path) -> None:
    command, _ = made(JOINED, tmp_path)
    assert "+ray_kwargs.ray_init.address='10.0.0.1:6379'" in command
    log = tmp_path / "logs" / "verl-03.jsonl"
    assert f"+ray_kwargs.ray_init.runtime_env.env_vars.VERL_FILE_LOGGER_PATH='{log}'" in command
    assert "+ray_kwargs.ray_init.runtime_env.env_vars.MAESTRO_SPARE_ABOVE='1.0'" in command
    assert f"data.train_files=['{Path('rows/train.parquet').resolve()}']" in command
    assert "data.val_files=['/rows/validation.parquet']" in command
    assert {"trainer.nnodes=2", "trainer.n_gpus_per_node=4"} < set(command)


def test_what_ray_is_given_is_what_it_takes_from_one_that_joins(tmp_path: Path) -> None:
    command, env = made(JOINED, tmp_path)
    with initialize_config_module("verl.trainer.config", version_base=None):
        composed = compose("ppo_trainer", overrides=command[3:])
    given = OmegaConf.to_container(composed.ray_kwargs.ray_init)
    assert isinstance(given, dict)
    # Ray refuses num_cpus, num_gpus and object_store_memory from one that joins
    assert {key for key, value in given.items() if value is not None} == {"address", "runtime_env"}
    assert given["runtime_env"]["env_vars"] == env
    assert all(isinstance(value, str) for value in given["runtime_env"]["env_vars"].values())


def test_a_cluster_of_the_runs_own_has_a_folder_and_a_joined_one_keeps_its_own(tmp_path: Path) -> None:
    folder = own_folder(TrainConfig())  # type: ignore[call-arg]
    assert folder is not None and folder.is_dir()
    shutil.rmtree(folder)
    assert own_folder(TrainConfig.model_validate(JOINED)) is None


@pytest.mark.parametrize("address", ["head", "ray://head:10001", "head:6379; x", "local", ""])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match=r"ray\.address"):
        TrainConfig.model_validate(JOINED | {"ray": {"address": address}})


def test_the_cpu_platform_joins_no_cluster() -> None:
    with pytest.raises(ValidationError, match="platform cpu has a cluster of its own"):
        TrainConfig.model_validate({"ray": {"address": "auto"}})
