"""The reward of one episode: R = r_ans + r_fmt (or what a `RewardRule` makes of them), out of its trajectory record
alone.

r_ans is 0 or 1 by the benchmark's rule, r_fmt is 0 or -1. An episode that failed for infrastructure's sake
(an expert was down, a deadline passed) has no reward: it is not a wrong answer, and must stay out of means
and baselines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewards.benchmarks import score
from rewards.format import format_reward, well_formed_call
from rewards.read_answer import answers
from rewards.rule import PAPER, RewardRule
from rewards.turns import Turn, policy_turns

_INFRASTRUCTURE_STOP = "infrastructure"


@dataclass(frozen=True)
class Reward:
    """`total` = `answer` + `format` by the paper's rule; `answer` and `total` are None where `valid` is False.

    `format` is always the form of what was written; in an invalid episode it says nothing about the policy.

    `counts` always holds the same keys: turns, answers (complete tags), calls (well-formed), malformed,
    forged_observation (times that the policy made up an observation).
    """

    answer: float | None
    format: float
    total: float | None
    valid: bool
    explanation: str
    counts: dict[str, int] = field(default_factory=dict)
    prediction: str | None = None
    """The answer as the policy gave it, None when it gave none."""
    penalty: float = 0.0
    """What calls and cost took off, 0 by the paper's rule."""


def reward(trajectory: Mapping[str, Any], rule: RewardRule = PAPER) -> Reward:
    """The reward of one trajectory record; every part is measured, `rule` says how they add up.

    Raises ValueError when the record is broken, has no gold answer, or names an unknown benchmark.
    """
    turns = policy_turns(trajectory)
    given = answers(turn.text for turn in turns)
    prediction = given[-1] if given else None
    counts = _counts(trajectory, turns, len(given))
    failure = _failure(trajectory)
    form, why = format_reward(turns, rule.min_calls)
    if failure is not None:
        return Reward(None, form, None, False, f"no reward: {failure}", counts, prediction)
    gold = _gold(trajectory)
    answer = score(
        _field(trajectory, "benchmark"), gold, prediction, trajectory.get("choices"), trajectory.get("group")
    )
    penalty = rule.penalty(answer.value, counts["calls"], _cost(trajectory))
    taken_off = f"; calls and cost take off {penalty:g}" if penalty else ""
    return Reward(
        answer=answer.value,
        format=form,
        total=rule.total(answer.value, form, penalty),
        valid=True,
        explanation=f"answer {answer.value:g} ({answer.explanation}); format {form:g} ({why}){taken_off}",
        counts=counts,
        prediction=prediction,
        penalty=penalty,
    )


def _failure(trajectory: Mapping[str, Any]) -> str | None:
    """Why the episode is not valid, or None when it is."""
    valid = trajectory.get("valid")
    if not isinstance(valid, bool):
        raise ValueError(f"trajectory {trajectory.get('id', '(without id)')}: 'valid' is not true or false")
    stop = trajectory.get("stop")
    if valid and stop != _INFRASTRUCTURE_STOP:
        return None
    return f"stopped by {stop}" + (f": {trajectory['error']}" if trajectory.get("error") else "")


def _cost(trajectory: Mapping[str, Any]) -> float:
    """Money of the episode's calls, in the currency of the registry's prices; 0 where the record holds none."""
    usage = trajectory.get("usage")
    experts = usage.get("experts") if isinstance(usage, Mapping) else None
    cost = experts.get("cost") if isinstance(experts, Mapping) else None
    return float(cost) if isinstance(cost, int | float) and 0 <= cost < float("inf") else 0.0


def _counts(trajectory: Mapping[str, Any], turns: Sequence[Turn], given: int) -> dict[str, int]:
    recorded = trajectory.get("counts")
    forged = recorded.get("forged_observation") if isinstance(recorded, Mapping) else None
    if not isinstance(forged, int):
        forged = sum("<information>" in turn.text + turn.dropped_text for turn in turns)
    return {
        "turns": len(turns),
        "answers": given,
        "calls": sum(well_formed_call(turn) for turn in turns),
        "malformed": sum(turn.action == "malformed" for turn in turns),
        "forged_observation": forged,
    }


def _gold(trajectory: Mapping[str, Any]) -> str | list[str]:
    gold = trajectory.get("ground_truth")
    if gold is None:
        raise ValueError(f"trajectory {trajectory.get('id', '(without id)')}: no 'ground_truth' to score by")
    return [str(one) for one in gold] if isinstance(gold, list | tuple) else str(gold)


def _field(trajectory: Mapping[str, Any], name: str) -> str:
    value = trajectory.get(name)
    if not isinstance(value, str):
        raise ValueError(f"trajectory {trajectory.get('id', '(without id)')}: {name!r} is not a string")
    return value
