"""`maestro train --dry-run`: all of verl's settings with who set them, checked by the installed verl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maestro.cli.app import run
from registry.errors import UserFault
from train import dry_run as module
from train.config import TrainConfig
from train.dry_run import DryRun, dry_run
from train.paths import RunPaths
from train.pins import check_versions
from train.verl_config import platform_settings, verl_settings
from train.verl_sources import ORIGIN

PAPER = Path(__file__).parents[2] / "configs" / "train" / "paper_4xa100.yaml"
pytestmark = pytest.mark.timeout(900)  # importing verl takes minutes of a busy machine
EMBEDDED = PAPER.with_name("embedded.yaml")
ACTOR, ROLLOUT = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."


@pytest.fixture(scope="module")
def paper() -> DryRun:
    return dry_run(PAPER, ["grpo.rate=2e-6", "verl.trainer.log_val_generations=3"])


@pytest.mark.parametrize(
    ("key", "value", "set_by", "origin"),
    [
        ("data.train_batch_size", 32, "config", "grpo.prompts"),
        (ACTOR + "optim.lr", 2e-6, "command line", "grpo.rate"),
        ("trainer.log_val_generations", 3, "command line", "verl.trainer.log_val_generations"),
        ("data.image_patch_size", 16, "platform", None),
        (ROLLOUT + "checkpoint_engine.update_weights_bucket_megabytes", 2048, "platform", "engine.sync_mb"),
        ("data.truncation", "error", "maestro", None),
        (ACTOR + "kl_loss_type", "low_var_kl", "maestro", None),
        (ACTOR + "clip_ratio_c", 3.0, "verl default", None),
        # verl's own default takes its value from a setting of ours
        (ROLLOUT + "prompt_length", 12288, "config", "protocol.max_prompt_tokens"),
    ],
)
def test_every_setting_says_who_set_it(paper: DryRun, key: str, value: Any, set_by: str, origin: str | None) -> None:
    found = next(setting for setting in paper.settings if setting.key == key)
    assert (found.value, found.set_by, found.origin) == (value, set_by, origin)


def test_what_is_not_here_is_said_and_not_checked(paper: DryRun) -> None:
    assert any("models/Qwen3-VL-4B-Thinking" in note for note in paper.notes)
    assert paper.versions["verl"] == "0.9.1"


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("verl.trainer.n_gpus_per_node=3",
         "actor.ppo_mini_batch_size x rollout.n = 256 rollouts do not divide over 3 GPUs: 255 or 258 would"),
        ("verl.actor_rollout_ref.rollout.tensor_model_parallel_size=3",
         "a rollout engine of 3 GPUs does not divide the 4 GPUs of the trainer"),
        ("verl.actor_rollout_ref.rollout.max_model_len=8192",
         "rollout.max_model_len (8192) is below the 16384 tokens of one row"),
        ("verl.actor_rollout_ref.rollout.top_p=0.9", "must stay at 1 and -1"),
        ("verl.actor_rollout_ref.actor.loss_agg_mode=mean", "actor: Invalid loss_agg_mode: mean"),
        ("verl.actor_rollout_ref.rollout.mode=sync", "rollout: Rollout mode 'sync' has been removed"),
        ("verl.actor_rollout_ref.actor.policy_loss.loss_mode=nosuch", "policy loss: Unsupported loss mode: nosuch"),
        ("verl.algorithm.nosuch=1", "verl's settings do not take this: "),
    ],
)  # fmt: skip
def test_what_verl_would_refuse_is_refused_before_anything_starts(override: str, says: str) -> None:
    with pytest.raises(UserFault) as caught:
        dry_run(PAPER, [override])
    assert says in caught.value.what
    assert caught.value.where == str(PAPER)


def test_fewer_gpus_than_asked_for_are_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "visible_gpus", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(UserFault, match=r"asks for 4 GPUs, this node shows 2 \(CUDA_VISIBLE_DEVICES=0,1\)"):
        dry_run(PAPER)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"verl": "0.9.2", "vllm": "0.24.0"}, "wrong versions: verl 0.9.2, 0.9.1 is needed"),
        ({"verl": "0.9.1", "vllm": None}, "wrong versions: vllm is not installed, 0.24.0 is needed"),
        ({"verl": None, "vllm": "0.11.0"}, "verl is not installed, 0.9.1 is needed; vllm 0.11.0, 0.24.0 is needed"),
    ],
)
def test_another_verl_or_vllm_is_refused_with_both_versions(found: dict[str, str | None], says: str) -> None:
    with pytest.raises(UserFault) as caught:
        check_versions(found.get)
    assert says in caught.value.what


def test_a_build_tag_is_no_other_version() -> None:
    assert check_versions({"verl": "0.9.1", "vllm": "0.24.0+cpu"}.get) == {"verl": "0.9.1", "vllm": "0.24.0+cpu"}


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_every_setting_that_follows_from_a_key_names_it(platform: str) -> None:
    """Changing the named key changes the setting, and no setting without a named key changes with any of them."""
    other = {
        "seed": 3, "name": "other", "run": "/other", "policy": "/elsewhere", "resume": "never", "platform": platform,
        "data": {"train_files": ["a.parquet"], "validation_files": ["b.parquet"]},
        "protocol": {"max_prompt_tokens": 200, "max_trajectory_tokens": 320},
        "grpo": {
            "steps": 7, "prompts": 12, "samples": 4, "mini_prompts": 6, "rate": 1e-5, "warmup": 2, "kl": 0.1,
            "schedule": "cosine", "weight_decay": 0.1, "clip_low": 0.1, "clip_high": 0.3, "entropy": 0.01,
            "temperature": 0.9, "micro_tokens": 4096, "dynamic_batch": False, "micro_rollouts": 2,
            "log_prob_rollouts": 4, "betas": [0.8, 0.9], "grad_clip": 2.0, "validation_samples": 2, "loss": "gspo",
            "correction": "sequence", "correction_cap": 4.0, "drop_flat": True, "drop_flat_most": 1,
        },
        "lora": {"rank": 4, "alpha": 8},
        "cluster": {"nodes": 2 if platform == "cuda" else 1, "gpus_per_node": 2},
        "checkpoint": {"every": 3, "keep": 5, "validate_every": 9},
    }  # fmt: skip
    if platform == "cuda":
        other["engine"] = {"tensor_parallel": 2, "memory": 0.5, "max_num_seqs": 8, "dtype": "float16",
                           "attention": "flash_attention_2", "offload": True, "sync_mb": 64}  # fmt: skip

    def settings(fields: dict[str, Any]) -> dict[str, Any]:
        config = TrainConfig.model_validate(fields)
        made = verl_settings(config, RunPaths.at(config.run), Path(config.policy or "/cold"))
        return {key.lstrip("+"): value for key, value in made.items()}

    before, after = settings({"platform": platform}), settings(other)
    changed = {key for key in after if before.get(key, "absent") != after[key]}
    platforms = {key.lstrip("+") for key in platform_settings(TrainConfig.model_validate({"platform": platform}))}
    assert changed - set(ORIGIN) - platforms == set()
    if platform == "cuda":
        assert set(ORIGIN) & set(after) - changed == set()


def test_the_command_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--dry-run", str(EMBEDDED), "grpo.drop_flat=true", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    by_key = {setting["key"]: setting for setting in told["settings"]}
    assert by_key["trainer.v1.sampler.sampler_kwargs.most_dropped"]["value"] == 48
    assert by_key["algorithm.filter_groups.enable"]["set_by"] == "command line"
    assert by_key["trainer.device"] == {"key": "trainer.device", "value": "cpu", "set_by": "platform", "origin": None}


def test_the_command_refuses_with_one_message_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--dry-run", str(PAPER), "verl.trainer.nnodes=5"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: verl would refuse this run:\n- actor.ppo_mini_batch_size x rollout.n = 256")
    assert "Traceback" not in told.err
