"""What of verl's settings a GPU node and the options beyond the paper ask for (`train.verl_config` puts all together).

One idea: with every option off and on a CPU these functions give nothing, so a run that names no option is composed
exactly as it was before there were any.
"""

from __future__ import annotations

from typing import Any

from train.config import TrainConfig

_ACTOR, _MODEL, _ROLLOUT = "actor_rollout_ref.actor.", "actor_rollout_ref.model.", "actor_rollout_ref.rollout."
SAMPLER = "trainer.v1.sampler.sampler_kwargs."


def context_tokens(config: TrainConfig) -> int:
    """Tokens that the rollout engine must hold of one sequence: prompt and trajectory, in whole blocks of 32."""
    return -(-(config.protocol.max_prompt_tokens + config.protocol.max_trajectory_tokens) // 32) * 32


def stated(config: TrainConfig) -> dict[str, Any]:
    """Settings whose default here is verl's own: written out for a GPU node, elsewhere only where they differ."""
    g = config.grpo
    rows = [
        (_ACTOR + "optim.betas", list(g.betas), [0.9, 0.999]),
        (_ACTOR + "optim.clip_grad", g.grad_clip, 1.0),
        (_ROLLOUT + "val_kwargs.n", g.validation_samples, 1),
    ]
    return {key: value for key, value, default in rows if config.platform == "cuda" or value != default}


def options(config: TrainConfig) -> dict[str, Any]:
    """What the options beyond the paper change; empty where all are off."""
    g, lora = config.grpo, config.lora
    changed: dict[str, Any] = {}
    if g.loss == "gspo":
        changed |= {
            _ACTOR + "policy_loss.loss_mode": "maestro_gspo",
            _ACTOR + "loss_agg_mode": "seq-mean-token-mean",  # equation 5 of the GSPO paper: a mean over trajectories
        }
    if g.correction != "none":
        changed |= {
            "algorithm.rollout_correction.bypass_mode": False,  # the actor's own log-probs are the old ones
            "algorithm.rollout_correction.rollout_is": g.correction,
            "algorithm.rollout_correction.rollout_is_threshold": g.correction_cap,
        }
    if g.drop_flat:
        changed |= {
            # makes verl's trainer draw single prompts, so that exactly what is missing is sampled anew
            "algorithm.filter_groups.enable": True,
            "algorithm.filter_groups.metric": "reward",
            "+" + SAMPLER + "drop_flat": True,
            "+" + SAMPLER + "prompts": g.prompts,
            "+" + SAMPLER + "most_dropped": g.drop_flat_most * g.prompts,
        }
    if lora.rank:
        changed |= {
            _MODEL + "lora_rank": lora.rank,
            _MODEL + "lora_alpha": lora.alpha,
            _MODEL + "target_modules": "all-linear",
            _MODEL + "exclude_modules": None if lora.vision else ".*visual.*",
            _MODEL + "lora.merge": True,  # the engine gets whole weights, as without adapters
        }
    return changed


def gpu(config: TrainConfig) -> dict[str, Any]:
    """What a GPU node needs, beside what every platform gets."""
    e = config.engine
    return {
        "data.image_patch_size": 16,  # Qwen3-VL; verl's default of 14 is Qwen2.5-VL's
        "+" + _MODEL + "override_config.attn_implementation": e.attention,
        _MODEL + "use_remove_padding": e.attention == "flash_attention_2",
        _MODEL + "enable_gradient_checkpointing": True,
        _ACTOR + "fsdp_config.param_offload": e.offload,
        _ACTOR + "fsdp_config.optimizer_offload": e.offload,
        _ROLLOUT + "tensor_model_parallel_size": e.tensor_parallel,
        _ROLLOUT + "dtype": e.dtype,
        _ROLLOUT + "gpu_memory_utilization": e.memory,
        _ROLLOUT + "max_num_seqs": e.max_num_seqs,
        # without it vLLM reserves cache for the model's whole context (262,144 tokens of Qwen3-VL) and may not start
        _ROLLOUT + "max_model_len": context_tokens(config),
        _ROLLOUT + "checkpoint_engine.update_weights_bucket_megabytes": e.sync_mb,
    }
