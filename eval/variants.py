"""The runs that an evaluation consists of: every arm at each of its temperatures.

The one idea: a variant has a key of its own in the journal; the first temperature of an arm is its headline.
"""

from __future__ import annotations

from dataclasses import dataclass

from eval.config import EvalConfig
from orchestrator.budget import Budget


@dataclass(frozen=True)
class Variant:
    """One arm at one temperature; ``key`` names it in the journal."""

    arm: str
    temperature: float
    headline: bool
    """Whether the arm's ``accuracy`` is this variant's; the others are reported beside it."""

    @property
    def key(self) -> str:
        if self.headline:
            return self.arm
        return f"{self.arm}/greedy" if self.temperature == 0 else f"{self.arm}/t{self.temperature:g}"


def variants(config: EvalConfig) -> list[Variant]:
    """Every arm with every temperature, in the order of the configuration."""
    found = []
    for name, arm in config.arms.items():
        temperatures = arm.temperatures if arm.policy is not None else arm.temperatures[:1]
        found += [Variant(name, value, index == 0) for index, value in enumerate(temperatures)]
    return found


def samples_of(config: EvalConfig, variant: Variant) -> int:
    """Samples of each row: the configured number where the arm draws at random, otherwise one."""
    arm = config.arms[variant.arm]
    drawn = arm.kind == "random_pair" or (arm.policy is not None and variant.temperature > 0)
    return config.samples if drawn else 1


def budget_of(config: EvalConfig, variant: Variant) -> Budget:
    """The configured budget for arms with a model. Rules without a tokenizer have nothing that a limit in
    tokens could measure; they keep horizon and forgiven turns only."""
    if config.arms[variant.arm].policy is not None:
        return config.budget.build()
    return Budget(horizon=config.budget.horizon, malformed_turns=config.budget.malformed_turns)
