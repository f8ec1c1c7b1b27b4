"""Options beyond the paper: off by default, each with its effect on verl's settings, impossible ones refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from registry.errors import UserFault
from train.config import TrainConfig, load_config
from train.option_rules import nearest_multiples
from train.paths import RunPaths
from train.verl_config import verl_settings

CONFIGS = Path(__file__).parents[2] / "configs" / "train"
ACTOR, MODEL = "actor_rollout_ref.actor.", "actor_rollout_ref.model."
CORRECTION = "algorithm.rollout_correction."


def settings_of(**fields: Any) -> dict[str, Any]:
    config = TrainConfig.model_validate(fields)
    return verl_settings(config, RunPaths.at(Path("/run")), Path("/policy"))


def changes(**fields: Any) -> dict[str, Any]:
    """What these fields change of the default run's settings."""
    before, after = settings_of(), settings_of(**fields)
    assert not before.keys() - after.keys()
    return {key: value for key, value in after.items() if before.get(key, "absent") != value}


def test_options_named_at_their_defaults_change_nothing() -> None:
    default = TrainConfig.model_validate({})
    fields = {name: getattr(default, name).model_dump() for name in ("reward", "lora", "cluster", "engine", "grpo")}
    assert changes(**fields) == {}


@pytest.mark.parametrize(
    ("fields", "changed"),
    [
        ({"clip_high": 0.28}, {ACTOR + "clip_ratio_high": 0.28}),
        (
            {"loss": "gspo"},
            {ACTOR + "policy_loss.loss_mode": "maestro_gspo", ACTOR + "loss_agg_mode": "seq-mean-token-mean"},
        ),
        (
            {"correction": "token", "correction_cap": 3.0},
            {CORRECTION + "bypass_mode": False, CORRECTION + "rollout_is": "token",
             CORRECTION + "rollout_is_threshold": 3.0},
        ),
        (
            {"drop_flat": True, "drop_flat_most": 2},
            {"algorithm.filter_groups.enable": True, "algorithm.filter_groups.metric": "reward",
             "+trainer.v1.sampler.sampler_kwargs.drop_flat": True,
             "+trainer.v1.sampler.sampler_kwargs.prompts": 16,
             "+trainer.v1.sampler.sampler_kwargs.most_dropped": 32},
        ),
        ({"kl": 0.05}, {ACTOR + "use_kl_loss": True, ACTOR + "kl_loss_coef": 0.05}),
        ({"mini_prompts": 4}, {ACTOR + "ppo_mini_batch_size": 4}),
        ({"betas": [0.9, 0.99]}, {ACTOR + "optim.betas": [0.9, 0.99]}),
        ({"grad_clip": 0.5}, {ACTOR + "optim.clip_grad": 0.5}),
        ({"validation_samples": 8}, {"actor_rollout_ref.rollout.val_kwargs.n": 8}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)  # fmt: skip
def test_an_option_of_grpo_changes_these_settings_and_no_others(fields: Any, changed: dict[str, Any]) -> None:
    assert changes(grpo=fields) == changed


def test_adapters_leave_the_vision_tower_alone_and_reach_the_engine_merged() -> None:
    assert changes(lora={"rank": 16, "alpha": 64}) == {
        MODEL + "lora_rank": 16, MODEL + "lora_alpha": 64, MODEL + "target_modules": "all-linear",
        MODEL + "exclude_modules": ".*visual.*", MODEL + "lora.merge": True,
    }  # fmt: skip
    assert changes(lora={"rank": 16, "vision": True})[MODEL + "exclude_modules"] is None


def test_two_actor_processes_of_a_cpu_get_two_slots() -> None:
    assert changes(cluster={"gpus_per_node": 2}) == {
        "trainer.n_gpus_per_node": 2,
        "+ray_kwargs.ray_init.num_gpus": 2,
    }


def test_a_reward_option_is_no_setting_of_verls() -> None:
    assert changes(reward={"format": False, "min_calls": 1, "call_weight": 0.1}) == {}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (["cluster.gpus_per_node=3"],
         "an update of 32 prompts x 8 samples = 256 rollouts does not divide over 3 GPUs (cluster.nodes x "
         "cluster.gpus_per_node): set grpo.prompts (and grpo.mini_prompts) to 30 or 33"),
        (["grpo.mini_prompts=12"],
         "grpo.mini_prompts (12) does not divide grpo.prompts (32): the nearest that do are 8 and 16"),
        (["grpo.micro_tokens=16383"], "set grpo.micro_tokens=16384 or more"),
        (["grpo.dynamic_batch=false", "grpo.micro_rollouts=6"],
         "(6) does not divide the 64 rollouts of one GPU's update: the nearest that do are 4 and 8"),
        (["grpo.dynamic_batch=false", "grpo.micro_rollouts=null"],
         "grpo.dynamic_batch=false needs grpo.micro_rollouts and grpo.log_prob_rollouts"),
        (["engine.tensor_parallel=3"], "engine.tensor_parallel (3) does not divide the 4 GPUs of the cluster"),
        (["cluster.nodes=2", "engine.tensor_parallel=8"], "engine.tensor_parallel (8) is more than a node's GPUs"),
        (["reward.answer=false", "reward.format=false"], "every episode has the same reward"),
        (["reward.answer=false", "reward.call_weight=0.1"], "they need answer: true"),
        (["reward.min_calls=5"], "reward.min_calls (5) is more than protocol.horizon (4) allows"),
        (["reward.min_calls=2", "reward.format=false"], "it needs reward.format: true"),
        (["reward.min_calls=2", "reward.call_weight=0.1"], "set free_calls to at least 2"),
        (["grpo.loss=gspo", "grpo.spare_above=0.7"], "leave spare_above at 1"),
        (["grpo.loss=gspo", "grpo.correction=token"], "set correction: sequence instead of token"),
        (["grpo.clip_low=1.5"], "grpo.clip_low (1.5) must be below 1"),
        (["platform=cpu", "cluster.nodes=2"], "platform cpu is one machine"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_what_cannot_go_together_is_refused_with_the_way_out(fields: list[str], says: str) -> None:
    with pytest.raises(UserFault) as caught:
        load_config(CONFIGS / "paper_4xa100.yaml", fields)
    assert says in str(caught.value)


def test_three_nodes_of_four_cannot_share_the_papers_update_and_two_can() -> None:
    assert load_config(CONFIGS / "multinode.yaml").cluster.nodes == 2
    with pytest.raises(UserFault, match="256 rollouts does not divide over 12 GPUs"):
        load_config(CONFIGS / "multinode.yaml", ["cluster.nodes=3"])


@pytest.mark.parametrize(
    ("value", "step", "near"), [(5, 4, (4, 8)), (8, 4, (8, 8)), (1, 4, (4, 4)), (257, 3, (255, 258))]
)
def test_the_nearest_legal_values_are_above_nothing(value: int, step: int, near: tuple[int, int]) -> None:
    assert nearest_multiples(value, step) == near
