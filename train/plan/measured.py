"""`Measured`: what a finished or running run took, to be set beside an estimate.

One idea: medians of metrics.jsonl after the first steps (which start engines and caches), and the run's own config.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train.plan.time import StepTime
from train.plan.tokens import Usage

_MOST_STEPS = 100_000
_WARM = 2  # steps at the start that are left out


@dataclass(frozen=True)
class Measured:
    """Medians a step: seconds of the whole, of sampling with delegations, update and sync; tokens an episode."""

    root: str
    steps: int
    rollouts: float
    seconds: float
    gen: float
    update: float
    sync: float
    policy_tokens: float
    response_tokens: float
    calls: float

    def usage(self, base: Usage) -> Usage:
        """`base` with this run's tokens after the prompt, which its metrics do not count."""
        seen = max(0.0, self.response_tokens - self.policy_tokens)
        return replace(
            base,
            policy=self.policy_tokens,
            calls=self.calls,
            observation=seen / self.calls if self.calls else 0.0,
            source=f"measured in {self.root}",
        )

    def against(self, time: StepTime) -> list[dict[str, Any]]:
        """Estimate, measurement and their ratio for each part that the run's metrics tell apart."""
        pairs = (
            ("sampling", time.rollout, self.gen),
            ("update", time.update + time.log_probs, self.update),
            ("sync", time.sync, self.sync),
            ("step", time.step, self.seconds),
        )
        return [
            {"part": part, "estimated": round(ours, 2), "measured": round(theirs, 2), "ratio": round(ours / theirs, 2)}
            for part, ours, theirs in pairs
            if theirs > 0
        ]


def read_measured(run: Path) -> Measured:
    """The medians of a run's folder. Raises UserFault where it holds no complete steps."""
    path = run.expanduser() / "metrics.jsonl"
    steps: list[dict[str, Any]] = []
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in islice(lines, _MOST_STEPS):
                try:
                    step = json.loads(line)
                except (ValueError, RecursionError):
                    continue  # the last line of a run that goes on
                if isinstance(step, dict) and _is_number(step.get("seconds")) and _is_number(step.get("seconds_gen")):
                    steps.append(step)
    except OSError as error:
        raise UserFault(
            f"cannot read the run's metrics: {error.strerror}", where=str(path), fix="name the folder of a run"
        ) from error
    kept = steps[_WARM:]
    if not kept:
        raise UserFault(f"fewer than {_WARM + 1} complete steps", where=str(path), fix="let the run go on")

    def median(key: str) -> float:
        values = [step[key] for step in kept if _is_number(step.get(key))]
        return float(statistics.median(values)) if values else 0.0

    return Measured(
        root=str(run),
        steps=len(kept),
        rollouts=median("rollouts"),
        seconds=median("seconds"),
        gen=median("seconds_gen"),
        update=median("seconds_update"),
        sync=median("seconds_sync"),
        policy_tokens=median("policy_tokens"),
        response_tokens=median("response_tokens"),
        calls=median("calls"),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and value >= 0
