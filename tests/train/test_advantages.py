"""Group-relative advantages: what enters a group's baseline, and what gets exactly nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from train.advantage import group_advantages, maestro_grpo

YES = torch.ones(4, dtype=torch.bool)


def keys(*names: str) -> np.ndarray:
    return np.array(names, dtype=object)


def one_group(*rewards: float, valid: torch.Tensor | None = None, scale: bool = True) -> list[float]:
    values = torch.tensor(rewards, dtype=torch.float32)
    valid = torch.ones(len(rewards), dtype=torch.bool) if valid is None else valid
    return group_advantages(values, keys(*["a"] * len(rewards)), valid, scale_by_std=scale).tolist()


@pytest.mark.parametrize("reward", [1.0, -1.0, 0.4, 0.0], ids=["all right", "all wrong", "flat at 0.4", "flat at 0"])
def test_a_flat_group_gets_exactly_zero(reward: float) -> None:
    assert one_group(reward, reward, reward, reward) == [0.0, 0.0, 0.0, 0.0]


def test_rewards_are_centred_on_the_mean_and_divided_by_the_sample_deviation() -> None:
    # mean 0.5, deviation of the sample sqrt(1/3)
    assert one_group(1, 0, 1, 0) == pytest.approx([0.866024, -0.866024, 0.866024, -0.866024], abs=1e-5)


def test_without_scaling_only_the_mean_is_taken_off() -> None:
    assert one_group(1, 0, 0, 0, scale=False) == [0.75, -0.25, -0.25, -0.25]


def test_rows_with_equal_texts_are_groups_of_their_own() -> None:
    rewards = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    groups = keys("row-1", "row-1", "row-1", "row-1", "row-2", "row-2", "row-2", "row-2")
    assert group_advantages(rewards, groups, torch.ones(8, dtype=torch.bool)).tolist() == [0.0] * 8
    merged = group_advantages(rewards, keys(*["text"] * 8), torch.ones(8, dtype=torch.bool))
    assert merged.abs().min() > 0.9


def test_members_of_a_group_need_not_be_neighbours() -> None:
    got = group_advantages(torch.tensor([1.0, 5.0, 0.0, 5.0]), keys("a", "b", "a", "b"), YES, scale_by_std=False)
    assert got.tolist() == [0.5, 0.0, -0.5, 0.0]


def test_failed_members_enter_neither_mean_nor_deviation_and_get_zero() -> None:
    valid = torch.tensor([True, True, False, False])
    got = one_group(1, 0, 0, 0, valid=valid, scale=False)
    assert got == [0.5, -0.5, 0.0, 0.0]
    assert one_group(1, 1, 0, 0, valid=valid) == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("alive", [0, 1], ids=["no valid member", "a single valid member"])
def test_a_group_without_two_valid_members_gets_zero(alive: int) -> None:
    valid = torch.arange(4) < alive
    assert one_group(1, 0, 0, 1, valid=valid) == [0.0, 0.0, 0.0, 0.0]


def test_an_empty_batch_is_no_fault() -> None:
    assert group_advantages(torch.zeros(0), keys(), torch.zeros(0, dtype=torch.bool)).shape == (0,)


def test_the_estimator_spreads_advantages_over_policy_tokens_only() -> None:
    # prompt aside: 3 action tokens, 2 of an observation; the reward lies on the last token, an observation
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 1]])
    rewards = torch.zeros(2, 5)
    rewards[0, 4] = 1.0
    got, returns = maestro_grpo(rewards, mask, keys("a", "a"), norm_adv_by_std_in_grpo=False)
    assert got.tolist() == [[0.5, 0.5, 0.5, 0.0, 0.0], [-0.5, -0.5, -0.0, -0.0, -0.5]]
    assert returns is got


def test_the_token_that_holds_the_reward_does_not_matter() -> None:
    mask = torch.tensor([[1, 1, 0], [1, 1, 0]])
    first, last = torch.zeros(2, 3), torch.zeros(2, 3)
    first[0, 0] = last[0, 2] = 1.0
    assert torch.equal(maestro_grpo(first, mask, keys("a", "a"))[0], maestro_grpo(last, mask, keys("a", "a"))[0])


def test_the_estimator_knows_a_failed_rollout_by_its_empty_mask() -> None:
    mask = torch.tensor([[1, 1], [1, 1], [0, 0]])
    rewards = torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    got, _ = maestro_grpo(rewards, mask, keys("a", "a", "a"), config={"norm_adv_by_std_in_grpo": False})
    assert got.tolist() == [[0.5, 0.5], [-0.5, -0.5], [0.0, 0.0]]


def test_verl_finds_the_estimator_by_its_name() -> None:
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn

    assert get_adv_estimator_fn("maestro_grpo") is maestro_grpo
