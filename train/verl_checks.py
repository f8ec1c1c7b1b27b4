"""verl's own checks before anything starts: those of its main program, and those that it makes minutes later.

One idea: a composed config is what verl gets, whatever set its values; the first group runs verl's code, the second
says early what its workers and its engine would say late and without the keys.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

from train.option_rules import nearest_multiples

_SECTIONS = {
    "algorithm": "algorithm",
    "actor": "actor_rollout_ref.actor",
    "rollout": "actor_rollout_ref.rollout",
    "checkpoint engine": "actor_rollout_ref.rollout.checkpoint_engine",
    "transfer queue": "transfer_queue",
}


def refusals(composed: Any) -> list[str]:
    """What verl would refuse of a composed, resolved config (omegaconf); empty where it would start."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # verl tells of engines that are not installed
        return [*_late(composed), *_by_verl(composed)]


def _by_verl(composed: Any) -> Iterator[str]:
    """verl's dataclasses, `validate_config`, and the names of the hooks that it must find."""
    from omegaconf import OmegaConf
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn, get_policy_loss_fn
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config
    from verl.workers.config import HFModelConfig

    import train.advantage
    import train.policy_loss  # noqa: F401  (both register what verl looks up below)

    steps: dict[str, Any] = {
        name: lambda key=key: _dataclass(omega_conf_to_dataclass, OmegaConf.select(composed, key))
        for name, key in _SECTIONS.items()
    }
    # without its folder the model's section can only be compared with the fields of its class
    steps["model"] = lambda: OmegaConf.merge(OmegaConf.structured(HFModelConfig), composed.actor_rollout_ref.model)
    steps["whole config"] = lambda: validate_config(
        config=composed, use_reference_policy=need_reference_policy(composed), use_critic=need_critic(composed)
    )
    steps["advantage estimator"] = lambda: get_adv_estimator_fn(composed.algorithm.adv_estimator)
    steps["policy loss"] = lambda: get_policy_loss_fn(composed.actor_rollout_ref.actor.policy_loss.loss_mode)
    for name, step in steps.items():
        try:
            step()
        except Exception as error:  # verl asserts, raises and lets hydra raise
            yield f"{name}: {_sentence(error)}"


def _late(composed: Any) -> Iterator[str]:
    actor, rollout = composed.actor_rollout_ref.actor, composed.actor_rollout_ref.rollout
    world = composed.trainer.nnodes * composed.trainer.n_gpus_per_node
    update = actor.ppo_mini_batch_size * rollout.n
    if update % world:
        low, high = nearest_multiples(update, world)
        yield (
            f"actor.ppo_mini_batch_size x rollout.n = {update} rollouts do not divide over {world} GPUs: "
            f"{low} or {high} would"
        )
    if composed.data.train_batch_size % actor.ppo_mini_batch_size:
        yield (
            f"actor.ppo_mini_batch_size ({actor.ppo_mini_batch_size}) does not divide data.train_batch_size "
            f"({composed.data.train_batch_size}): verl would fill the last update with padding"
        )
    engine = rollout.tensor_model_parallel_size * rollout.data_parallel_size * rollout.pipeline_model_parallel_size
    if world % engine:
        yield f"a rollout engine of {engine} GPUs does not divide the {world} GPUs of the trainer"
    if actor.use_dynamic_bsz != rollout.log_prob_use_dynamic_bsz:
        yield "actor.use_dynamic_bsz and rollout.log_prob_use_dynamic_bsz differ"
    longest = composed.data.max_prompt_length + composed.data.max_response_length
    if actor.use_dynamic_bsz and actor.ppo_max_token_len_per_gpu * actor.ulysses_sequence_parallel_size < longest:
        yield (
            f"actor.ppo_max_token_len_per_gpu ({actor.ppo_max_token_len_per_gpu}) cannot hold one row of "
            f"{longest} tokens (data.max_prompt_length + data.max_response_length)"
        )
    if rollout.max_model_len is not None and rollout.max_model_len < longest:
        yield f"rollout.max_model_len ({rollout.max_model_len}) is below the {longest} tokens of one row"
    sampled = (rollout.temperature, rollout.top_p, rollout.top_k)
    if sampled[1:] != (1, -1):
        yield (
            f"rollout.top_p ({rollout.top_p:g}) and rollout.top_k ({rollout.top_k}) must stay at 1 and -1: "
            "log-probabilities of a cut distribution are not the actor's"
        )


def _dataclass(convert: Any, section: Any) -> Any:
    return convert(section) if section is not None and "_target_" in section else section


def _sentence(error: Exception) -> str:
    """The message of an error in one line; hydra hides it in its cause."""
    text = str(error.__cause__ or error).strip() or type(error).__name__
    return " ".join(text.splitlines()[0].split())[:400]
