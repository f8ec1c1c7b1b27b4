"""verl's records: the same fields for every sample, whatever happened to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewards.verl_adapter import RewardRecord, compute_score

FIELDS = set(RewardRecord.__annotations__)


def trajectory(**fields: Any) -> dict[str, Any]:
    search = {
        "type": "search",
        "expert": "Chart-Reader",
        "skill": "Chart_Problem_Solver",
        "query": "How high?",
    }
    turns = [
        {"text": "<search>Chart-Reader@@Chart_Problem_Solver: How high?</search>", "action": search},
        {"text": "<answer>42</answer>", "action": {"type": "answer", "text": "42"}},
    ]
    return {"id": "r1#0", "group": "", "turns": turns, "stop": "answered", "valid": True, **fields}


def graded(record: Any) -> RewardRecord:
    return compute_score(
        "exact", "decoded text <answer>7</answer>", "42", {"trajectory": record, "index": 3}, num_turns=2
    )


def test_good_failed_and_broken_samples_have_the_same_fields() -> None:
    samples = [
        graded(trajectory()),
        graded(trajectory(valid=False, stop="infrastructure", error="connection refused")),
        graded(trajectory(turns="none")),
        graded("{not json"),
        graded(trajectory(benchmark="nosuch")),
    ]
    assert [set(sample) for sample in samples] == [FIELDS] * 5
    assert [sample["reward_valid"] for sample in samples] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert [sample["acc"] for sample in samples] == [1.0, None, None, None, None]
    assert [sample["score"] for sample in samples] == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_the_reward_comes_from_the_trajectory_and_never_from_decoded_text() -> None:
    result = graded(json.dumps(trajectory()))
    assert (result["score"], result["pred"], result["format_reward"]) == (1.0, "42", 0.0)


def test_a_row_without_a_trajectory_is_refused() -> None:
    with pytest.raises(ValueError, match="agent loop"):
        compute_score("exact", "<answer>42</answer>", "42", {})


def test_a_broken_record_says_what_is_wrong() -> None:
    assert graded(trajectory(turns="none"))["explanation"].startswith("not graded: trajectory r1#0: 'turns'")
