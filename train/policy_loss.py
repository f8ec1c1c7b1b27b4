"""PPO's clipped loss and GSPO's, plus the gap between what the rollout sampled from and what the actor computes.

Loaded in the actor's process by verl (`actor_rollout_ref.model.external_lib`). With one update a step the actor has
the rollout's weights, so any gap beyond rounding means that ids, masks, images or weights do not line up.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache
from typing import Any

import torch
from verl.trainer.ppo.core_algos import (
    compute_policy_loss_gspo,
    compute_policy_loss_vanilla,
    register_policy_loss,
)

from train.placeholders import forbid_placeholders
from train.platform.patches import install

NAME = "maestro_clip"
GSPO = "maestro_gspo"
THREADS_VARIABLE = "MAESTRO_ACTOR_THREADS"  # set by the launcher on a CPU
SPARE_VARIABLE = "MAESTRO_SPARE_ABOVE"  # set by the launcher from grpo.spare_above
GAP_VARIABLE = "MAESTRO_MAX_GAP"  # set by the launcher from grpo.max_gap


@register_policy_loss(NAME)  # type: ignore[arg-type]
def clipped_loss_with_gap(*tensors: Any, **call: Any) -> tuple[torch.Tensor, dict[str, Any]]:
    """verl's policy-loss interface (`_with_gap` says what it takes): one clipped ratio a token."""
    return _with_gap(compute_policy_loss_vanilla, *tensors, **call)


@register_policy_loss(GSPO)  # type: ignore[arg-type]
def gspo_loss_with_gap(*tensors: Any, **call: Any) -> tuple[torch.Tensor, dict[str, Any]]:
    """The same with one clipped ratio a trajectory, the mean of its policy tokens' (arXiv 2507.18071)."""
    return _with_gap(compute_policy_loss_gspo, *tensors, **call)


def _with_gap(
    loss_of: Any,  # verl's decorator hides the real signature
    old_log_prob: torch.Tensor,
    log_prob: torch.Tensor,
    advantages: torch.Tensor,
    response_mask: torch.Tensor,
    loss_agg_mode: str = "token-mean",
    config: Any = None,
    rollout_is_weights: torch.Tensor | None = None,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """verl's loss, all tensors [B, L]. Adds the largest |p_actor - p_rollout| over policy tokens.

    The loss of a batch without any policy token is 0, not 0/0.
    """
    _use_threads()
    learned = response_mask.bool()
    # Observations carry no log-prob of the rollout: with the actor's own, their ratio is 1 whatever they hold.
    old_log_prob = torch.where(learned, old_log_prob, log_prob.detach())
    advantages = spare_the_sure(advantages, old_log_prob, float(os.environ.get(SPARE_VARIABLE, "1")))
    if config.global_batch_info.get("batch_num_tokens") == 0:
        config.global_batch_info["batch_num_tokens"] = 1  # verl's entropy term divides by it as well
    loss, metrics = loss_of(
        old_log_prob=old_log_prob,
        log_prob=log_prob,
        advantages=advantages,
        response_mask=response_mask,
        loss_agg_mode=loss_agg_mode,
        config=config,
        rollout_is_weights=rollout_is_weights,
    )
    if not learned.any():
        loss = log_prob.sum() * 0.0
    with torch.no_grad():
        gap = torch.where(learned, (log_prob.exp() - old_log_prob.exp()).abs(), 0.0)
        largest = gap.max().item() if gap.numel() else 0.0
    # verl averages these over micro-batches: the second is above 0 as soon as one micro-batch is off
    metrics["actor/rollout_prob_gap_max"] = largest
    metrics["actor/rollout_prob_gap_share"] = float(largest > float(os.environ.get(GAP_VARIABLE, "1e-4")))
    return loss, metrics


def spare_the_sure(advantages: torch.Tensor, old_log_prob: torch.Tensor, sure: float) -> torch.Tensor:
    """Advantages [B, L] without the negative ones of tokens that the policy was surer of than `sure` (1 = keep all).

    A failed rollout blames every token of it, the copied sub-question too, one that works praises the same tokens: on
    average nothing holds what is learned already in its place, and a high rate wears it away. Praise alone holds it.
    """
    if sure >= 1:
        return advantages
    return torch.where((advantages < 0) & (old_log_prob > math.log(sure)), 0.0, advantages)


@lru_cache(maxsize=1)
def _use_threads() -> None:
    """The actor updates while everybody else waits: it may take the cores that a rollout must share."""
    if os.environ.get(THREADS_VARIABLE):
        torch.set_num_threads(int(os.environ[THREADS_VARIABLE]))


forbid_placeholders()
if os.environ.get(THREADS_VARIABLE):  # a host without accelerators
    install()
