"""Every value of the paper's D.4 in configs/train/paper_4xa100.yaml, as verl gets it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from train.config import describe, load_config
from train.paths import RunPaths
from train.verl_config import verl_settings

CONFIGS = Path(__file__).parents[2] / "configs" / "train"
PAPER = CONFIGS / "paper_4xa100.yaml"
ACTOR, ROLLOUT = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."

# (verl's setting, value, what D.4 "Implementation Details" says)
D4: list[tuple[str, Any, str]] = [
    ("trainer.nnodes", 1, "on one node"),
    ("trainer.n_gpus_per_node", 4, "with 4 NVIDIA A100 GPUs"),
    (ACTOR + "strategy", "fsdp2", "under FSDP (its second version)"),
    ("algorithm.adv_estimator", "maestro_grpo", "with GRPO; no critic/value model is used"),
    (ACTOR + "optim.optimizer", "AdamWUnlessFlat", "AdamW (ours takes no step on a gradient of 0)"),
    (ACTOR + "optim.lr", 1e-6, "learning rate 1e-6"),
    (ACTOR + "optim.weight_decay", 0.01, "weight decay 0.01"),
    (ACTOR + "optim.betas", [0.9, 0.999], "betas (0.9, 0.999)"),
    (ACTOR + "optim.lr_warmup_steps", 0, "no warmup"),
    (ACTOR + "optim.lr_scheduler_type", "constant", "a constant learning-rate schedule"),
    (ACTOR + "optim.clip_grad", 1.0, "gradient clipping at norm 1.0"),
    ("trainer.total_training_steps", 380, "380 update steps"),
    (ROLLOUT + "n", 8, "n = 8 trajectories per prompt, a GRPO group size of 8"),
    ("data.train_batch_size", 32, "training batch size 32 prompts per update"),
    (ACTOR + "ppo_mini_batch_size", 32, "PPO mini-batch size 32 at the prompt level"),
    (ACTOR + "ppo_micro_batch_size_per_gpu", 1, "per-GPU PPO micro-batch size 1"),
    (ROLLOUT + "log_prob_micro_batch_size_per_gpu", 8, "per-GPU log-probability micro-batch size 8"),
    (ACTOR + "use_dynamic_bsz", True, "dynamic batch sizing is enabled"),
    (ROLLOUT + "name", "vllm", "generated with vLLM"),
    (ROLLOUT + "mode", "async", "asynchronously"),
    (ROLLOUT + "tensor_model_parallel_size", 1, "tensor parallel size 1"),
    (ROLLOUT + "dtype", "bfloat16", "bfloat16 rollout weights"),
    (ROLLOUT + "max_num_seqs", 512, "max_num_seqs = 512"),
    (ROLLOUT + "gpu_memory_utilization", 0.6, "gpu_memory_utilization = 0.6"),
    ("data.max_prompt_length", 12288, "maximum prompt length 12,288"),
    ("data.max_response_length", 4096, "maximum response length 4,096"),
    (ROLLOUT + "temperature", 1.0, "temperature 1.0"),
    (ROLLOUT + "top_p", 1.0, "top-p 1.0"),
    (ROLLOUT + "top_k", -1, "top-k -1"),
    (ROLLOUT + "val_kwargs.n", 8, "validation also uses 8 sampled rollouts per prompt"),
    (ROLLOUT + "val_kwargs.do_sample", True, "... sampled"),
]


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return verl_settings(load_config(PAPER), RunPaths.at(Path("/run")), Path("/policy"))


@pytest.mark.parametrize(("key", "value", "said"), D4, ids=[said for _, _, said in D4])
def test_a_value_of_d4_reaches_verl(settings: dict[str, Any], key: str, value: Any, said: str) -> None:
    assert settings[key] == value


def test_the_episode_is_d4s() -> None:
    config = load_config(PAPER)
    protocol = config.protocol
    assert protocol.horizon == 4  # up to 4 tool-interaction turns
    assert protocol.max_observation_tokens == 1024  # observations truncated to 1,024 tokens
    # actions capped at 8,192 tokens: a response of 4,096 with room for an observation caps them at 3,071 already
    assert protocol.max_turn_tokens == min(8192, 4096 - 1024 - 1)
    assert config.policy is not None and Path(config.policy).name == "Qwen3-VL-4B-Thinking"
    assert config.grpo.prompts * config.grpo.samples == 256  # 256 rollout trajectories an update


def test_verl_samples_without_repetition_penalty_whatever_a_config_says() -> None:
    from importlib.util import find_spec

    spec = find_spec("verl")
    assert spec is not None and spec.origin is not None
    loop = Path(spec.origin).parent / "trainer" / "ppo" / "v1" / "agent_loop_tq.py"
    assert "repetition_penalty=1.0," in loop.read_text()  # repetition penalty 1.0


def test_no_option_beyond_the_paper_is_on(settings: dict[str, Any]) -> None:
    config = load_config(PAPER)
    assert (config.reward.answer, config.reward.format, config.reward.min_calls) == (True, True, 1)
    assert (config.reward.call_weight, config.reward.cost_weight, config.lora.rank) == (0, 0, 0)
    grpo = config.grpo
    assert (grpo.loss, grpo.correction, grpo.drop_flat, grpo.kl) == ("clip", "none", False, 0)
    assert grpo.clip_low == grpo.clip_high == 0.2
    assert not any("lora" in key or "filter_groups" in key or "sampler_kwargs" in key for key in settings)


def test_the_engine_holds_one_whole_row_and_a_pass_of_the_actor_too(settings: dict[str, Any]) -> None:
    assert settings[ROLLOUT + "max_model_len"] == settings[ACTOR + "ppo_max_token_len_per_gpu"] == 12288 + 4096


@pytest.mark.parametrize("file", ["paper_4xa100.yaml", "paper_8xa100.yaml", "multinode.yaml"])
def test_every_value_has_its_source_beside_it(file: str) -> None:
    lines = (CONFIGS / file).read_text().splitlines()
    for above, line in zip(["", *lines], lines, strict=False):
        value = re.match(r" *(\w+): +[^#\s]", line)
        if value is None or value[1] in ("name", "run", "platform"):
            continue
        source = line.partition(" #")[2] or above.partition("# ")[2]
        assert re.search(r"D\.[14]|3\.4|4\.1|ours|4096 - 1024 - 1", source), line


def test_the_larger_configs_make_the_papers_update_on_more_gpus() -> None:
    paper = dict((key, value) for key, value, _ in describe(load_config(PAPER)))
    for file, gpus in (("paper_8xa100.yaml", ("1", "8")), ("multinode.yaml", ("2", "4"))):
        other = dict((key, value) for key, value, _ in describe(load_config(CONFIGS / file)))
        differ = {key for key in paper if paper[key] != other[key]}
        assert differ <= {"name", "run", "cluster.nodes", "cluster.gpus_per_node", "ray.address"}
        assert (other["cluster.nodes"], other["cluster.gpus_per_node"]) == gpus
