"""One training step in numbers: from rollout records and verl's own metrics to one flat record.

Denominators: reward, accuracy and format are means over valid rollouts; malformed is the share of all rollouts that
hold a malformed turn; copied is the share of calls whose sub-question equals the question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from train.rollout_log import RolloutRecord

# verl's name -> ours
_FROM_VERL = {
    "actor/entropy_loss": "entropy",
    "actor/grad_norm": "grad_norm",
    "actor/rollout_prob_gap_max": "prob_gap",
    "actor/rollout_prob_gap_share": "prob_gap_share",
    "actor/pg_clipfrac": "clip_fraction",
    "timing_s/step": "seconds",
    "timing_s/gen": "seconds_gen",
    "timing_s/update_actor": "seconds_update",
    "timing_s/update_weights": "seconds_sync",
    "timing_s/testing": "seconds_validation",
    "timing_s/save_checkpoint": "seconds_checkpoint",
    "response_length/mean": "response_tokens",
    "actor/lr": "rate",
}


def step_metrics(step: int, records: Sequence[RolloutRecord], verl: Mapping[str, Any]) -> dict[str, Any]:
    """The record of one step; `records` are its training rollouts."""
    result: dict[str, Any] = {"step": step, **rollout_metrics(records)}
    for theirs, ours in _FROM_VERL.items():
        if theirs in verl:
            # null in verl's log is NaN or infinity
            result[ours] = None if verl[theirs] is None else float(verl[theirs])
    return result


def rollout_metrics(records: Sequence[RolloutRecord]) -> dict[str, Any]:
    """Statistics of a set of rollouts (a training step, or a validation)."""
    valid = [r for r in records if r.valid]
    calls = sum(r.calls for r in records)
    pairs = Counter(pair for r in records for pair in r.pairs)
    return {
        "rollouts": len(records),
        "invalid": len(records) - len(valid),
        "reward": _mean([r.reward for r in valid]),
        "accuracy": _mean([r.answer for r in valid]),
        "format": _mean([r.format for r in valid]),
        "malformed": _mean([float(r.malformed > 0) for r in records]),
        "copied": sum(r.copied for r in records) / calls if calls else None,
        "calls": _mean([float(r.calls) for r in records]),
        "policy_tokens": _mean([float(r.policy_tokens) for r in records]),
        "pairs": dict(pairs.most_common()),
        "accuracy_by_group": {
            group: _mean([r.answer for r in valid if r.group == group]) for group in sorted({r.group for r in valid})
        },
        **group_statistics(valid),
    }


def group_statistics(valid: Sequence[RolloutRecord]) -> dict[str, int]:
    """How many groups teach nothing (flat: one reward throughout), and how many of those are all right, all wrong."""
    groups: dict[tuple[str, int], list[RolloutRecord]] = {}
    for record in valid:
        groups.setdefault((record.row, record.index), []).append(record)
    counts = {"groups": len(groups), "groups_all_right": 0, "groups_all_wrong": 0, "groups_flat": 0}
    for members in groups.values():
        if len({m.reward for m in members}) > 1:
            continue
        counts["groups_flat"] += 1
        if all(m.answer == 1 for m in members):
            counts["groups_all_right"] += 1
        elif all(m.answer == 0 for m in members):
            counts["groups_all_wrong"] += 1
    return counts


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None
