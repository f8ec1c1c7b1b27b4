"""`PaperRun`: the one published time of this training, and what rows it would take to need as long by our estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from train.plan.tokens import Usage


@dataclass(frozen=True)
class PaperRun:
    """The paper's own training (D.4): 3 days and 11 hours for 380 updates of 32 x 8 rollouts on 4 A100 of 80 GB.
    It does not say how many tokens an episode took."""

    seconds: float = 3 * 86400 + 11 * 3600
    updates: int = 380
    rollouts: int = 256
    gpus: int = 4
    gpu: str = "A100-80GB"

    @property
    def step(self) -> float:
        """Seconds of an update, everything included."""
        return self.seconds / self.updates


PAPER = PaperRun()


def implied_row(seconds: Callable[[Usage], float], use: Usage, full: Usage, wanted: float = PAPER.step) -> float | None:
    """Tokens a row at which a step takes `wanted` seconds, on the straight line from `use` to `full`; None where
    neither end brackets it. seconds: the estimate of a step."""
    if not seconds(use) <= wanted <= seconds(full):
        return None
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        if seconds(_between(use, full, middle)) < wanted:
            low = middle
        else:
            high = middle
    return _between(use, full, high).total


def _between(use: Usage, full: Usage, share: float) -> Usage:
    numbers = [field.name for field in fields(Usage) if field.name != "source"]
    mixed = {name: getattr(use, name) + share * (getattr(full, name) - getattr(use, name)) for name in numbers}
    return replace(use, **mixed)
