"""Dropping groups that teach nothing: which are flat, and how many of them a step may drop."""

from __future__ import annotations

from typing import Any

import pytest

from train.group_filter import flat_reward
from train.rollout_buffer import PromptBuffer


@pytest.mark.parametrize(
    ("scores", "valid", "flat"),
    [
        ([1, 1, 1, 1], [1, 1, 1, 1], 1.0),
        ([-1, -1, -1, -1], [1, 1, 1, 1], -1.0),
        ([1, 0, 1, 1], [1, 1, 1, 1], None),
        ([1, 0, 1, 1], [1, 0, 1, 1], 1.0),  # the 0 is a failed expert's, not the policy's
        ([1, 0, 0, 0], [1, 0, 0, 0], 1.0),  # one valid rollout has nothing to be compared with
        ([0, 0], [0, 0], 0.0),
    ],
)
def test_a_group_is_flat_by_its_valid_rollouts(scores: list[float], valid: list[int], flat: float | None) -> None:
    assert flat_reward(scores, [bool(v) for v in valid]) == flat


def buffer(**wanted: Any) -> Any:
    """A buffer that knows four finished groups: three flat ones and one that teaches."""
    made: Any = PromptBuffer(
        trainer_mode="sync", trainer_config={}, max_off_policy_threshold=8, max_off_policy_strategy="drop",
        sampler_kwargs=wanted, refill_fn=lambda count: None,
    )  # fmt: skip
    made.finished_keys["train"] = {"a", "b", "c", "d"}
    made._dapo_classification_cache["train"] = {"a": 1.0, "b": None, "c": -1.0, "d": 1.0}
    return made


def test_without_the_option_nothing_is_dropped() -> None:
    assert buffer()._dapo_filtered_keys("train") == (set(), {})


def test_flat_groups_are_dropped_and_counted_by_their_reward() -> None:
    made = buffer(drop_flat=True, prompts=4, most_dropped=12)
    assert made._dapo_filtered_keys("train") == ({"a", "c", "d"}, {1.0: 2, -1.0: 1})
    assert made._dapo_filtered_keys("val") == (set(), {})


def test_a_step_drops_no_more_than_its_limit_so_that_it_ends() -> None:
    made = buffer(drop_flat=True, prompts=4, most_dropped=2)
    dropped, _ = made._dapo_filtered_keys("train")
    assert dropped == {"a", "c"}
    made.finished_keys["train"] -= dropped
    assert made._dapo_filtered_keys("train") == (set(), {})  # the third stays in the batch
