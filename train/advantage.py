"""Group-relative advantages (GRPO, paper 3.3) that leave out rollouts which failed for no fault of the policy.

One idea: an invalid trajectory carries an all-zero response mask; it enters neither the group's mean and standard
deviation nor the loss. The reward is one number a trajectory, whatever token it was stored on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from verl.trainer.ppo.core_algos import register_adv_est

NAME = "maestro_grpo"


def group_advantages(
    rewards: torch.Tensor, groups: np.ndarray, valid: torch.Tensor, *, scale_by_std: bool = True, epsilon: float = 1e-6
) -> torch.Tensor:
    """Advantages [B] from rewards [B], group keys [B] and validity [B] (bool).

    A flat group, a group with fewer than two valid members and every invalid member get exactly 0.
    """
    advantages = torch.zeros_like(rewards)
    for key in dict.fromkeys(groups.tolist()):
        members = torch.as_tensor(groups == key) & valid
        values = rewards[members]
        if values.numel() < 2 or bool((values == values[0]).all()):
            continue
        centred = values - values.mean()
        advantages[members] = centred / (values.std() + epsilon) if scale_by_std else centred
    return advantages


@register_adv_est(NAME)
def maestro_grpo(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: np.ndarray,
    norm_adv_by_std_in_grpo: bool = True,
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """verl's estimator interface: rewards and mask [B, L] -> advantages and returns [B, L]."""
    if config is not None:
        norm_adv_by_std_in_grpo = config.get("norm_adv_by_std_in_grpo", norm_adv_by_std_in_grpo)
    with torch.no_grad():
        scores = group_advantages(
            token_level_rewards.sum(-1),
            np.asarray(index),
            response_mask.sum(-1) > 0,
            scale_by_std=norm_adv_by_std_in_grpo,
        )
        advantages = scores.unsqueeze(-1) * response_mask
    return advantages, advantages
