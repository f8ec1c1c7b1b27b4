"""Rules that say loudly when a run goes wrong: collapse, NaN, rollout and actor that disagree.

One idea: pure functions over the stream of step records; each warning has a name and is given once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WINDOW = 10


@dataclass(frozen=True)
class Alarm:
    """name: which rule. text: what was seen, and what to do."""

    name: str
    text: str
    fatal: bool = False


def alarms(history: Sequence[Mapping[str, Any]], *, max_gap: float) -> list[Alarm]:
    """Alarms that the newest record of `history` (step records in order) gives rise to."""
    if not history:
        return []
    now = history[-1]
    found: list[Alarm] = []
    for key in ("entropy", "grad_norm", "reward"):
        value = now.get(key)
        # verl's log turns NaN and infinity into null; only a reward is unknown for a good reason (no valid rollout)
        lost = value is None and key in now and key != "reward"
        if lost or (isinstance(value, float) and not math.isfinite(value)):
            text = f"step {now['step']}: {key} is {'not a finite number' if lost else value}"
            found.append(Alarm("not_a_number", text, fatal=True))
    gap, share = now.get("prob_gap") or 0.0, now.get("prob_gap_share") or 0.0
    if gap > max_gap or share > 0:
        found.append(
            Alarm(
                "rollout_actor_gap",
                f"step {now['step']}: rollout and actor probabilities differ by {gap:.2e} (mean over micro-batches; "
                f"{share:.0%} of them above {max_gap:.0e}): ids, masks, pictures or weights do not line up",
            )
        )
    if now.get("invalid") and now["invalid"] > 0.5 * now["rollouts"]:
        found.append(
            Alarm(
                "experts_failing",
                f"step {now['step']}: {now['invalid']} of {now['rollouts']} rollouts failed for "
                "want of experts; they are left out of the update",
            )
        )
    if len(history) >= 2 * WINDOW:
        rewards = [_mean("reward", history[i : i + WINDOW]) for i in range(len(history) - WINDOW + 1)]
        best, last = max((r for r in rewards if r is not None), default=None), rewards[-1]
        if best is not None and last is not None and last < best - 0.5:
            found.append(
                Alarm("reward_collapse", f"step {now['step']}: reward fell from {best:.2f} to {last:.2f}", fatal=True)
            )
        before, after = _mean("entropy", history[:WINDOW]), _mean("entropy", history[-WINDOW:])
        if before is not None and after is not None and after > 3 * max(before, 0.05):
            found.append(Alarm("entropy_rising", f"step {now['step']}: entropy rose from {before:.2f} to {after:.2f}"))
    return found


def _mean(key: str, records: Sequence[Mapping[str, Any]]) -> float | None:
    """None where no record knows the value: a window of failed rollouts says nothing about the policy."""
    values = [r[key] for r in records if r.get(key) is not None]
    return sum(values) / len(values) if values else None
