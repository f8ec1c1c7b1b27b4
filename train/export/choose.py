"""Which policy of a run is meant: the last, the best, or that of one step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train import checkpoints
from train.best_policy import read_best
from train.paths import RunPaths


@dataclass(frozen=True)
class Choice:
    """A policy of a run. weights, processor: folders they are taken from. step: update steps behind it.

    best: what `policy-best/` says of itself, where that is the choice.
    """

    weights: Path
    processor: Path
    step: int
    best: dict[str, Any] | None = None


def choose(paths: RunPaths, config: dict[str, Any], *, step: int | None = None, best: bool = False) -> Choice:
    """The policy to hand on; without `step` and `best` the last one. Raises UserFault where the run has none."""
    steps = checkpoints.complete_steps(paths.checkpoints)
    if best:
        note = read_best(paths.best)
        if note is None:
            raise UserFault(
                "no best policy is kept",
                where=str(paths.root),
                fix="the first checkpoint that is validated leaves one (checkpoint.every, validate_every); or --step N",
            )
        return Choice(paths.best, paths.best, note["step"], note)
    if step is None:
        last = int((config.get("grpo") or {}).get("steps", 0))
        if (paths.policy / "config.json").exists() and (not steps or steps[-1] <= last):
            return Choice(paths.policy, paths.policy, steps[-1] if steps else last)
        if not steps:
            raise UserFault(
                "the run has neither a policy nor a complete checkpoint", where=str(paths.root), fix="let it train on"
            )
        step = steps[-1]
    if step not in steps:
        kept = ", ".join(map(str, steps)) or "none"
        raise UserFault(
            f"no complete checkpoint of step {step}; kept: {kept}",
            where=str(paths.checkpoints),
            fix="give one of these, --best, or neither for the last policy",
        )
    weights = paths.checkpoints / f"global_step_{step}" / "actor" / "huggingface"
    return Choice(weights, _processor(paths, config, weights), step)


def _processor(paths: RunPaths, config: dict[str, Any], weights: Path) -> Path:
    """Where config, tokenizer and processor come from: the policy before RL, else verl's copy of it."""
    start = config.get("policy")
    for folder in (Path(start) if start else paths.cold, paths.policy):
        if (folder / "config.json").exists():
            return folder
    return weights
