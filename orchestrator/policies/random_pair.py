"""A pair drawn uniformly: what the choice is worth at all."""

from __future__ import annotations

import random

from orchestrator.policies.once import DelegateOnce
from registry.registry import Registry


class RandomPair(DelegateOnce):
    """Expert and skill drawn independently and uniformly. seed: mixed into the episode's own seed."""

    name = "random_pair"

    def __init__(self, registry: Registry, seed: int = 0) -> None:
        self._experts = [expert.name for expert in registry.experts]
        self._skills = [skill.name for skill in registry.skills]
        self._seed = seed

    def pick(self, question: str, seed: int) -> tuple[str, str]:
        rng = random.Random(f"{self._seed}:{seed}")
        return rng.choice(self._experts), rng.choice(self._skills)
