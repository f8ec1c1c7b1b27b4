"""The same pair for every question: what one good expert alone is worth."""

from __future__ import annotations

from orchestrator.policies.once import DelegateOnce


class FixedPair(DelegateOnce):
    """Always `expert@@skill`."""

    def __init__(self, expert: str, skill: str) -> None:
        self.name = f"fixed:{expert}@@{skill}"
        self._pair = (expert, skill)

    def pick(self, question: str, seed: int) -> tuple[str, str]:
        return self._pair
