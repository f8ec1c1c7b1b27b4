"""Section `watch` of the training config: what a run shows of itself, and when it waits for its experts."""

from __future__ import annotations

from pydantic import Field

from registry.strict_config import Strict


class WatchSection(Strict):
    """What a run shows while it trains, and what it does when experts are down. No part of a run's identity."""

    pages_every: int = Field(20, ge=0, description="steps between fresh pages (training.html); 0 = only on request")
    wandb: bool = Field(False, description="log to Weights & Biases too (WANDB_API_KEY, or WANDB_MODE=offline)")
    wandb_project: str = Field("maestro", min_length=1, description="project there")
    pause_above: float = Field(
        0.5, gt=0, le=1, description="share of recent rollouts lost to experts above which the job waits for them"
    )
    given_up_above: float = Field(
        0.5, gt=0, le=1, description="share of a step's rows given up above which --stop-on-collapse ends the job"
    )
    pause_seconds: float = Field(1800.0, gt=0, description="longest wait for experts before the job ends")
    probe_seconds: float = Field(5.0, gt=0, description="between two trials of one rollout while the job waits")
