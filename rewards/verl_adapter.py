"""verl's door to the reward: `custom_reward_function.path=pkg://rewards.verl_adapter`, `name=compute_score`.

The one idea: verl makes columns of what a reward function returns, so every sample returns the same fields,
always (None where unknown). The reward is read from the trajectory that the agent loop hands over in
`extra_info`, never from `solution_str`: decoded text no longer tells who wrote what.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, TypedDict

from rewards.reward import Reward, reward

TRAJECTORY_KEY = "trajectory"
_log = logging.getLogger(__name__)


class RewardRecord(TypedDict):
    """What verl stores for each sample. `score` must be a number: 0.0 where `reward_valid` is 0.0, and then
    unused.
    """

    score: float
    reward_valid: float
    acc: float | None
    format_reward: float | None
    pred: str
    calls: int
    malformed: int
    answers: int
    forged_observation: int
    penalty: float
    explanation: str


def record(result: Reward) -> RewardRecord:
    """A `Reward` as verl's record. `acc` is r_ans, None for an invalid episode."""
    return RewardRecord(
        score=result.total if result.total is not None else 0.0,
        reward_valid=float(result.valid),
        acc=result.answer,
        format_reward=result.format if result.valid else None,
        pred=result.prediction or "",
        calls=result.counts.get("calls", 0),
        malformed=result.counts.get("malformed", 0),
        answers=result.counts.get("answers", 0),
        forged_observation=result.counts.get("forged_observation", 0),
        penalty=result.penalty,
        explanation=result.explanation,
    )


def invalid_record(why: str) -> RewardRecord:
    """The record of a sample that could not be graded."""
    return record(Reward(None, -1.0, None, False, why))


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    **_unused: Any,
) -> RewardRecord:
    """verl's reward function. `extra_info["trajectory"]` is a trajectory record, as an object or as its JSON
    line.

    A broken record or row makes this sample invalid and says so in `explanation`; the other samples go on.

    Raises ValueError when there is no trajectory at all: then the agent loop is not ours, and no sample can
    be right.
    """
    trajectory = (extra_info or {}).get(TRAJECTORY_KEY)
    if trajectory is None:
        raise ValueError(f"extra_info holds no {TRAJECTORY_KEY!r}: it comes with the agent loop of train/")
    try:
        content = json.loads(trajectory) if isinstance(trajectory, str | bytes) else dict(trajectory)
        if not isinstance(content, dict):
            raise ValueError("the trajectory is not a JSON object")
        content.setdefault("benchmark", data_source)
        content.setdefault("ground_truth", ground_truth)
        return record(reward(content))
    except (ValueError, TypeError) as fault:
        _log.warning("sample not graded: %s", fault)
        return invalid_record(f"not graded: {fault}")
