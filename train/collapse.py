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
        if isinstance(value, float) and not math.isfinite(value):
            found.append(Alarm("not_a_number", f"step {now['step']}: {key} is {value}", fatal=True))
    gap = now.get("prob_gap")
    if gap is not None and gap > max_gap or (now.get("prob_gap_share") or 0.0) > 0:
        found.append(
            Alarm(
                "rollout_actor_gap",
                f"step {now['step']}: rollout and actor probabilities differ by {gap:.2e} (limit {max_gap:.0e}): "
                "ids, masks, pictures or weights do not line up",
            )
        )
    if now.get("invalid") and now["invalid"] > 0.5 * now["rollouts"]:
        found.append(
            Alarm("experts_failing", f"step {now['step']}: {now['invalid']} of {now['rollouts']} rollouts failed for "
                  "want of experts; they are left out of the update")
        )
    if len(history) >= 2 * WINDOW:
        first, last = _window(history[:WINDOW]), _window(history[-WINDOW:])
        best = max(_window(history[i:i + WINDOW])["reward"] for i in range(len(history) - WINDOW + 1))
        if last["reward"] < best - 0.5:
            found.append(Alarm("reward_collapse", f"step {now['step']}: reward fell from {best:.2f} to {last['reward']:.2f}", True))
        if last["entropy"] > 3 * max(first["entropy"], 0.05):
            found.append(Alarm("entropy_rising", f"step {now['step']}: entropy rose from {first['entropy']:.2f} to {last['entropy']:.2f}"))
    return found


def _window(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    result = {}
    for key in ("reward", "entropy"):
        values = [r[key] for r in records if r.get(key) is not None]
        result[key] = sum(values) / len(values) if values else 0.0
    return result
