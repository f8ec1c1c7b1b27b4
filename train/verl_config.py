"""From our config to verl's: the one place that knows verl's names.

One idea: a plain list of Hydra overrides, in sections, that can be printed, tested and read beside verl's own docs.
The same function serves both platforms; `_CPU` is everything that a host without accelerators needs, and
`train.verl_options` what a GPU node and the options beyond the paper ask for.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from train import requeue
from train.config import TrainConfig
from train.paths import RunPaths
from train.resume import resume_settings, source_of
from train.verl_options import context_tokens, gpu, options, stated

HERE = Path(__file__).resolve().parent
AGENT = "maestro"


def verl_settings(config: TrainConfig, paths: RunPaths, model: Path) -> dict[str, Any]:
    """verl's settings as dotted keys; a leading `+` adds a key that verl's schema does not list."""
    p, g, c = config.protocol, config.grpo, config.checkpoint
    settings: dict[str, Any] = {
        "algorithm.adv_estimator": "maestro_grpo",
        "algorithm.use_kl_in_reward": False,
        # one update a step: the rollout's own log-probs are the old ones
        "algorithm.rollout_correction.bypass_mode": True,
        "data.train_files": list(config.data.train_files) or str(paths.train_rows),
        "data.val_files": list(config.data.validation_files) or str(paths.validation_rows),
        "data.train_batch_size": g.prompts,
        "data.max_prompt_length": p.max_prompt_tokens,
        "data.max_response_length": p.max_trajectory_tokens,
        "data.seed": config.seed,
        "data.shuffle": True,
        "data.validation_shuffle": False,
        "data.filter_overlong_prompts": False,
        "data.truncation": "error",
        "actor_rollout_ref.model.path": str(model),
        "actor_rollout_ref.model.external_lib": "train.policy_loss",
        "actor_rollout_ref.actor.strategy": "fsdp2",
        "actor_rollout_ref.actor.optim.optimizer_impl": "train.optimizer",
        "actor_rollout_ref.actor.optim.optimizer": "AdamWUnlessFlat",
        "actor_rollout_ref.actor.optim.lr": g.rate,
        "actor_rollout_ref.actor.optim.lr_warmup_steps": g.warmup,
        "actor_rollout_ref.actor.optim.lr_scheduler_type": g.schedule,
        "actor_rollout_ref.actor.optim.min_lr_ratio": 0.1,
        "actor_rollout_ref.actor.optim.weight_decay": g.weight_decay,
        "actor_rollout_ref.actor.ppo_mini_batch_size": g.mini_prompts or g.prompts,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": g.micro_rollouts,
        "actor_rollout_ref.actor.use_dynamic_bsz": g.dynamic_batch,
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": g.micro_tokens,
        "actor_rollout_ref.actor.clip_ratio": g.clip_low,
        "actor_rollout_ref.actor.clip_ratio_low": g.clip_low,
        "actor_rollout_ref.actor.clip_ratio_high": g.clip_high,
        "actor_rollout_ref.actor.policy_loss.loss_mode": "maestro_clip",
        "actor_rollout_ref.actor.use_kl_loss": g.kl > 0,
        "actor_rollout_ref.actor.kl_loss_coef": g.kl,
        "actor_rollout_ref.actor.kl_loss_type": "low_var_kl",
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": g.log_prob_rollouts,
        "actor_rollout_ref.ref.log_prob_use_dynamic_bsz": g.dynamic_batch,
        "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu": g.micro_tokens,
        "actor_rollout_ref.actor.entropy_coeff": g.entropy,
        "actor_rollout_ref.actor.calculate_entropy": True,
        "actor_rollout_ref.actor.data_loader_seed": config.seed,
        # a Hugging Face copy beside every checkpoint: what is exported in the end
        "actor_rollout_ref.actor.checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.mode": "async",
        "actor_rollout_ref.rollout.n": g.samples,
        "actor_rollout_ref.rollout.temperature": g.temperature,
        "actor_rollout_ref.rollout.top_p": 1.0,
        "actor_rollout_ref.rollout.top_k": -1,
        "actor_rollout_ref.rollout.val_kwargs.temperature": g.temperature,
        "actor_rollout_ref.rollout.val_kwargs.do_sample": True,
        "actor_rollout_ref.rollout.calculate_log_probs": True,
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": g.log_prob_rollouts,
        "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz": g.dynamic_batch,
        "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu": g.micro_tokens,
        "actor_rollout_ref.rollout.seed": config.seed,
        "actor_rollout_ref.rollout.agent.default_agent_loop": AGENT,
        "actor_rollout_ref.rollout.agent.agent_loop_config_path": str(paths.agent_loops),
        "+actor_rollout_ref.rollout.agent.agent_loop_manager_class": "train.rollout_worker.RolloutManager",
        "trainer.v1.sampler.custom_sampler.path": str(HERE / "rollout_buffer.py"),
        "trainer.v1.sampler.custom_sampler.name": "PromptBuffer",
        "trainer.project_name": "maestro",
        "trainer.experiment_name": config.name,
        "trainer.logger": ["console", "file"],
        "trainer.total_training_steps": g.steps,
        "trainer.total_epochs": 1_000_000,  # the step count ends the run
        "trainer.save_freq": c.every,
        "trainer.max_actor_ckpt_to_keep": c.keep,
        "trainer.test_freq": c.validate_every if c.validate_every else g.steps,
        "trainer.val_before_train": False,
        "trainer.default_local_dir": str(paths.checkpoints),
        "trainer.checkpoint_callback_class": "train.checkpoint_hook.CheckpointHook",
        "trainer.nnodes": config.cluster.nodes,
        "trainer.n_gpus_per_node": config.cluster.gpus_per_node,
    }
    return (
        settings
        | resume_settings(config, paths)
        | stated(config)
        | options(config)
        | platform_settings(config)
        | config.verl
    )


def platform_settings(config: TrainConfig) -> dict[str, Any]:
    """What the platform of `config` needs of verl."""
    if config.platform == "cuda":
        return gpu(config)
    return _CPU | {
        "+ray_kwargs.ray_init.num_gpus": config.cluster.gpus_per_node,
        # verl asks for three logical CPUs a worker, and for two beside them
        "ray_kwargs.ray_init.num_cpus": max(16, 3 * config.cluster.gpus_per_node + 4),
        "actor_rollout_ref.rollout.max_model_len": context_tokens(config),
        "actor_rollout_ref.rollout.max_num_seqs": config.grpo.prompts * config.grpo.samples,
    }


def overrides(settings: dict[str, Any]) -> list[str]:
    """Hydra override strings, in the order of `settings`."""
    return [f"{key}={_literal(value)}" for key, value in settings.items()]


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_literal(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str):
        # Hydra reads a backslash as such, but for those right before a quote
        doubled = re.sub(r"\\+(?='|\Z)", lambda run: run[0] * 2, value)
        return "'" + doubled.replace("'", "\\'") + "'"
    return repr(value)


# What a host without accelerators needs; every line was needed or measured (docs/training.md).
_CPU: dict[str, Any] = {
    "data.dataloader_num_workers": 0,
    "data.image_patch_size": 16,
    "+actor_rollout_ref.model.override_config.attn_implementation": "sdpa",
    "actor_rollout_ref.model.use_remove_padding": False,
    "actor_rollout_ref.model.enable_gradient_checkpointing": False,
    "actor_rollout_ref.actor.use_torch_compile": False,
    "actor_rollout_ref.ref.use_torch_compile": False,
    "actor_rollout_ref.ref.strategy": "fsdp2",
    "actor_rollout_ref.ref.fsdp_config.use_torch_compile": False,
    "actor_rollout_ref.ref.fsdp_config.model_dtype": "fp32",
    "actor_rollout_ref.actor.fsdp_config.use_torch_compile": False,
    "actor_rollout_ref.actor.fsdp_config.model_dtype": "fp32",
    "+actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype": "fp32",
    "+actor_rollout_ref.actor.fsdp_config.mixed_precision.reduce_dtype": "fp32",
    "+actor_rollout_ref.actor.fsdp_config.mixed_precision.buffer_dtype": "fp32",
    "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
    "actor_rollout_ref.rollout.dtype": "float32",
    "actor_rollout_ref.rollout.enforce_eager": True,
    "actor_rollout_ref.rollout.free_cache_engine": False,
    "+actor_rollout_ref.rollout.enable_sleep_mode": False,
    "actor_rollout_ref.rollout.load_format": "auto",
    "actor_rollout_ref.rollout.max_num_batched_tokens": 4096,
    "+actor_rollout_ref.rollout.engine_kwargs.vllm.worker_extension_cls": (
        "train.platform.vllm_worker.CPUWorkerExtension"
    ),
    "+actor_rollout_ref.rollout.engine_kwargs.vllm.skip_mm_profiling": True,
    "+actor_rollout_ref.rollout.engine_kwargs.vllm.block_size": 32,
    "+actor_rollout_ref.rollout.engine_kwargs.vllm.distributed_executor_backend": "uni",
    "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes": 16,
    "actor_rollout_ref.rollout.agent.num_workers": 1,
    "reward.num_workers": 1,
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    "trainer.device": "cpu",
    # Ray's logical resources: verl places its workers on "GPU" slots
    "+ray_kwargs.ray_init.num_gpus": 1,
    "+ray_kwargs.ray_init.include_dashboard": False,
    "+ray_kwargs.ray_init._node_ip_address": "127.0.0.1",
    "+ray_kwargs.ray_init.object_store_memory": 1_000_000_000,
}


def environment(config: TrainConfig, paths: RunPaths, attempt: int) -> dict[str, str]:
    """Environment of the verl process, on top of the caller's."""
    common = {
        "VERL_FILE_LOGGER_PATH": str(paths.verl_metrics(attempt)),
        "MAESTRO_SPARE_ABOVE": repr(config.grpo.spare_above),
        "MAESTRO_MAX_GAP": repr(config.grpo.max_gap),  # read by train.policy_loss
        **requeue.environment(config.grpo.requeue, paths.requeue, source_of(config, paths)),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "HYDRA_FULL_ERROR": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "WANDB_MODE": "disabled",
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONDONTWRITEBYTECODE": "",
    }
    if config.platform != "cpu":
        return common
    return common | {
        "VERL_PLATFORM": "cpu",
        "VERL_USE_EXTERNAL_MODULES": "train.platform.cpu",
        "VERL_ENGINE_DEVICE": "cuda",  # verl registers its FSDP engine for cuda and npu only
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "MAESTRO_ACTOR_THREADS": str(max(1, (os.cpu_count() or 1) // config.cluster.gpus_per_node)),
        "KMP_BLOCKTIME": "0",  # a thread that waits gives its core away
        "OMP_NUM_THREADS": "1",  # two threads fight with the other processes and lose far more than they win
        "RAY_worker_niceness": "0",
        "RAY_AUTH_MODE": "disabled",
        "HF_HUB_OFFLINE": "1",
    }
