"""verl's replay buffer asked twenty times a second, and the advantage that leaves failed rollouts out.

Loaded by verl in the trainer process (`trainer.v1.sampler.custom_sampler`), so that the estimator registers there too.
"""

from __future__ import annotations

from typing import Any

from train import advantage  # noqa: F401  (registers the estimator)
from train.group_filter import FlatGroups


class PromptBuffer(FlatGroups):
    """A step of the tiny policy lasts a few seconds: the default poll of 2 s would be a third of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("poll_interval", 0.05)
        super().__init__(*args, **kwargs)
