"""One training step in numbers: from rollout records and verl's own metrics to one flat record.

Denominators: reward, accuracy and format are means over valid rollouts; malformed is the share of all rollouts that
hold a malformed turn; copied is the share of calls whose sub-question equals the question. A number that the records
of an older run do not know is None.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from train.rollout_log import Call, RolloutRecord

# verl's name -> ours
_FROM_VERL = {
    "actor/entropy_loss": "entropy",
    "actor/kl_loss": "kl",
    "actor/ppo_kl": "ppo_kl",
    "actor/pg_loss": "policy_loss",
    "actor/grad_norm": "grad_norm",
    "actor/rollout_prob_gap_max": "prob_gap",
    "actor/rollout_prob_gap_share": "prob_gap_share",
    "actor/pg_clipfrac": "clip_fraction",
    "timing_s/step": "seconds",
    "timing_s/gen": "seconds_gen",
    "timing_s/old_log_prob": "seconds_log_prob",
    "timing_s/ref": "seconds_reference",
    "timing_s/update_actor": "seconds_update",
    "timing_s/update_weights": "seconds_sync",
    "timing_s/testing": "seconds_validation",
    "timing_s/save_checkpoint": "seconds_checkpoint",
    "prompt_length/mean": "prompt_tokens",
    "response_length/mean": "response_tokens",
    "response_length/max": "response_tokens_max",
    "perf/throughput": "tokens_a_second",
    "perf/max_memory_allocated_gb": "memory_gb",
    "actor/lr": "rate",
    "training/rows/requeued": "rows_requeued",
    "training/rows/again": "rows_again",
    "training/rows/given_up": "rows_given_up",
    "training/rows/broken": "rows_broken",
}
# our names of the parts of a step's time; a validation or checkpoint is not in every step
TIME_PARTS = (
    "seconds_gen", "seconds_log_prob", "seconds_reference", "seconds_update", "seconds_sync", "seconds_validation",
    "seconds_checkpoint",
)  # fmt: skip


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
        "several_calls": _mean([float(r.calls > 1) for r in records]),
        "turns": _mean([r.turns for r in records]),
        "policy_tokens": _mean([float(r.policy_tokens) for r in records]),
        "cut_turns": _mean([None if r.cut_turns is None else float(r.cut_turns > 0) for r in records]),
        "cut_observations": _cut_observations(records),
        "stops": dict(Counter(r.stop for r in records).most_common()),
        "pairs": dict(pairs.most_common()),
        "accuracy_by_group": _by(valid, lambda r: r.group),
        "accuracy_by_source": _by(valid, lambda r: r.source),
        **group_statistics(records),
        **_experts([call for r in records for call in r.experts or ()]),
        "seconds_paused": max((r.waited_s for r in records if r.waited_s is not None), default=None),
    }


def group_statistics(records: Sequence[RolloutRecord]) -> dict[str, int]:
    """How many groups teach nothing: excluded for want of two valid rollouts, or flat (one reward throughout), and how
    many of the flat ones are all right, all wrong."""
    groups: dict[tuple[str, int], list[RolloutRecord]] = {}
    for record in records:
        groups.setdefault((record.row, record.index), []).append(record)
    counts = {
        "groups": len(groups),
        "groups_all_right": 0,
        "groups_all_wrong": 0,
        "groups_flat": 0,
        "groups_excluded": 0,
    }
    for members in ([m for m in group if m.valid] for group in groups.values()):
        if len(members) < 2:
            counts["groups_excluded"] += 1
            continue
        if len({m.reward for m in members}) > 1:
            continue
        counts["groups_flat"] += 1
        if all(m.answer == 1 for m in members):
            counts["groups_all_right"] += 1
        elif all(m.answer == 0 for m in members):
            counts["groups_all_wrong"] += 1
    return counts


def _experts(calls: Sequence[Call]) -> dict[str, Any]:
    """Delegations by expert; latency over those that the cache did not answer. Nothing where none is known."""
    if not calls:
        return {}
    by_expert: dict[str, list[Call]] = {}
    for call in calls:
        by_expert.setdefault(call[0], []).append(call)
    return {
        "expert_failures": _failed(calls) / len(calls),
        "experts": {
            name: {
                "calls": len(own),
                "failed": _failed(own),
                "cached": sum(cached for *_, cached in own),
                "seconds_p50": _quantile([s for _, _, s, cached in own if not cached], 0.5),
                "seconds_p95": _quantile([s for _, _, s, cached in own if not cached], 0.95),
            }
            for name, own in sorted(by_expert.items())
        },
        "outcomes": dict(Counter(outcome for _, outcome, *_ in calls).most_common()),
    }


def _failed(calls: Sequence[Call]) -> int:
    """Calls without an answer; what the policy named wrongly is its own fault."""
    return sum(outcome not in ("ok", "invalid_action") for _, outcome, *_ in calls)


def _cut_observations(records: Sequence[RolloutRecord]) -> float | None:
    """Share of observations that were shortened."""
    known = [r for r in records if r.cut_observations is not None]
    seen = sum(len(r.experts or ()) for r in known)
    return sum(r.cut_observations or 0 for r in known) / seen if seen else None


def _by(valid: Sequence[RolloutRecord], key: Callable[[RolloutRecord], str | None]) -> dict[str, float | None]:
    names = sorted({name for r in valid if (name := key(r)) is not None})
    return {name: _mean([r.answer for r in valid if key(r) == name]) for name in names}


def _quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None
