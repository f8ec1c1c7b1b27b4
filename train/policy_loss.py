"""PPO's clipped loss, plus the gap between what the rollout sampled from and what the actor computes.

Loaded in the actor's process by verl (`actor_rollout_ref.model.external_lib`). With one update a step the actor has
the rollout's weights, so any gap beyond rounding means that ids, masks, images or weights do not line up.
"""

from __future__ import annotations

from typing import Any

import torch
from verl.trainer.ppo.core_algos import compute_policy_loss_vanilla, register_policy_loss

NAME = "maestro_clip"
TOLERANCE = 1e-4


@register_policy_loss(NAME)
def clipped_loss_with_gap(
    old_log_prob: torch.Tensor, log_prob: torch.Tensor, advantages: torch.Tensor, response_mask: torch.Tensor, **kwargs: Any
) -> tuple[torch.Tensor, dict[str, Any]]:
    """verl's policy-loss interface; all tensors [B, L]. Adds the largest |p_actor - p_rollout| over policy tokens."""
    loss, metrics = compute_policy_loss_vanilla(  # type: ignore[call-arg]
        old_log_prob=old_log_prob, log_prob=log_prob, advantages=advantages, response_mask=response_mask, **kwargs
    )
    with torch.no_grad():
        gap = (log_prob.exp() - old_log_prob.exp()).abs() * response_mask
        largest = gap.max().item() if gap.numel() else 0.0
    # verl averages these over micro-batches: the second is above 0 as soon as one micro-batch is off
    metrics["actor/rollout_prob_gap_max"] = largest
    metrics["actor/rollout_prob_gap_share"] = float(largest > TOLERANCE)
    return loss, metrics
