"""The reward of one episode: R = r_ans + r_fmt, out of its trajectory record alone.

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
from rewards.turns import Turn, policy_turns

_INFRASTRUCTURE_STOP = "infrastructure"


@dataclass(frozen=True)
class Reward:
    """`total` = `answer` + `format`; `answer` and `total` are None where `valid` is False.

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


def reward(trajectory: Mapping[str, Any]) -> Reward:
    """The reward of one trajectory record.

    Raises ValueError when the record is broken, has no gold answer, or names an unknown benchmark.
    """
    turns = policy_turns(trajectory)
    given = answers(turn.text for turn in turns)
    prediction = given[-1] if given else None
    counts = _counts(trajectory, turns, len(given))
    failure = _failure(trajectory)
    form, why = format_reward(turns)
    if failure is not None:
        return Reward(None, form, None, False, f"no reward: {failure}", counts, prediction)
    gold = _gold(trajectory)
    answer = score(
        _field(trajectory, "benchmark"), gold, prediction, trajectory.get("choices"), trajectory.get("group")
    )
    return Reward(
        answer=answer.value,
        format=form,
        total=answer.value + form,
        valid=True,
        explanation=f"answer {answer.value:g} ({answer.explanation}); format {form:g} ({why})",
        counts=counts,
        prediction=prediction,
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
