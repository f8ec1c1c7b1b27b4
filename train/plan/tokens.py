"""`Usage` and `Budget`: how many tokens an episode may take, and how many it is expected to take.

One idea: limits come from the config and are certain; what is used of them is an assumption, or measured in a run that
is named. Both are carried through every later estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from registry.schema import Resize
from train.config import TrainConfig
from train.plan.architecture import Architecture


@dataclass(frozen=True)
class Usage:
    """Tokens of one episode. `image` is part of `prompt`; `observation` is one of `calls`; `tail`: the longest
    episode of a step in means; `latency`: seconds of one delegation. source: where the figures come from."""

    prompt: float
    image: float
    policy: float
    observation: float
    calls: float
    tail: float
    latency: float
    source: str

    @property
    def response(self) -> float:
        """Everything after the prompt."""
        return self.policy + self.calls * self.observation

    @property
    def total(self) -> float:
        return self.prompt + self.response


@dataclass(frozen=True)
class Budget:
    """Limits in tokens, and what follows from them."""

    prompt: int
    trajectory: int
    turn: int
    observation: int
    horizon: int
    system: int
    image_limit: int | None
    image_typical: int | None
    room_for_text: int | None
    fitting_pixels: int | None
    full_observations: int

    @property
    def longest_row(self) -> int:
        """Prompt and trajectory at their limits."""
        return self.prompt + self.trajectory

    @property
    def policy_after_observations(self) -> int:
        """Tokens left to the policy when all delegations answer at full length."""
        return max(0, self.trajectory - self.horizon * self.observation)


def image_tokens(width: int, height: int, shape: Architecture, max_pixels: int | None = None) -> int:
    """Tokens of a picture of that size (pixels) after the processor has resized it; 0 without a vision tower."""
    if shape.vision is None:
        return 0
    from experts.tools.boxes import resized

    factor = shape.vision.patch * shape.vision.merge
    high = max_pixels or shape.max_pixels or 16_777_216
    low = min(shape.min_pixels or factor**2, high)
    wide, tall = resized(width, height, Resize(factor=factor, min_pixels=max(1, low), max_pixels=max(high, factor**2)))
    return (wide // factor) * (tall // factor)


def budget_of(
    config: TrainConfig, shape: Architecture, system: int, image_size: tuple[int, int], max_pixels: int | None
) -> Budget:
    """The limits of `config`. system: tokens of the system prompt; max_pixels: None takes the processor's."""
    p = config.protocol
    limit = typical = room = fitting = None
    if shape.vision is not None:
        area = (shape.vision.patch * shape.vision.merge) ** 2
        high = max_pixels or shape.max_pixels
        limit = math.floor(high / area) if high else None
        typical = image_tokens(*image_size, shape, max_pixels)
        spare = p.max_prompt_tokens - system - _question(config) - 2  # the picture stands between two marks
        fitting = max(0, spare) * area
        room = p.max_prompt_tokens - system - 2 - limit if limit is not None else None
    return Budget(
        prompt=p.max_prompt_tokens,
        trajectory=p.max_trajectory_tokens,
        turn=p.max_turn_tokens,
        observation=p.max_observation_tokens,
        horizon=p.horizon,
        system=system,
        image_limit=limit,
        image_typical=typical,
        room_for_text=room,
        fitting_pixels=fitting,
        full_observations=min(p.horizon, (p.max_trajectory_tokens - 1) // p.max_observation_tokens),
    )


def expected(config: TrainConfig, budget: Budget, latency: float) -> Usage:
    """What an episode is taken to use where no run was measured: 1.2 calls, 0.3 of the turn limit a turn (800 tokens
    an episode at most), a fifth of the observation limit (300 at most), the longest episode 3 means."""
    calls = min(1.2, float(config.protocol.horizon))
    image = float(budget.image_typical or 0)
    policy = min(800.0, 0.3 * budget.turn * (calls + 1))
    prompt = min(float(budget.prompt), budget.system + image + 2 + _question(config))
    return Usage(prompt, image, policy, min(300.0, 0.2 * budget.observation), calls, 3.0, latency, "assumed")


def at_limits(budget: Budget, latency: float) -> Usage:
    """Every prompt, turn, observation and call at its limit."""
    calls = float(budget.horizon)
    policy = max(budget.policy_after_observations, budget.trajectory // 4)
    observation = (budget.trajectory - policy) / calls
    image = min(budget.prompt - budget.system, budget.image_limit or 0)
    return Usage(
        float(budget.prompt), float(max(0, image)), float(policy), observation, calls, 1.0, latency, "every limit"
    )


def _question(config: TrainConfig) -> int:
    """Tokens of a question with its chat marks: 100, in small prompts a quarter."""
    return min(100, config.protocol.max_prompt_tokens // 4)
