"""The clipped loss and the gap between rollout and actor."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from train import policy_loss

clipped_loss_with_gap: Any = policy_loss.clipped_loss_with_gap  # verl's decorator hides the real signature


class ActorSettings(dict):  # type: ignore[type-arg]
    """What verl's loss reads of the actor's config."""

    def __init__(self, tokens: int | None = None) -> None:
        super().__init__(clip_ratio_c=3.0)
        self.clip_ratio = self.clip_ratio_low = self.clip_ratio_high = 0.2
        self.global_batch_info: dict[str, Any] = {"dp_size": 1, "batch_num_tokens": tokens}


def loss_of(
    old: list[list[float]], new: list[list[float]], mask: list[list[int]], advantage: float = 1.0, **settings: Any
) -> tuple[torch.Tensor, dict[str, Any], torch.Tensor]:
    actor = torch.tensor(new, requires_grad=True)
    learned = torch.tensor(mask)
    loss, metrics = clipped_loss_with_gap(
        torch.tensor(old), actor, torch.full_like(actor, advantage) * learned, learned.bool(),
        config=ActorSettings(**settings),
    )  # fmt: skip
    return loss, metrics, actor


def test_the_gap_is_the_largest_difference_of_probabilities_on_policy_tokens() -> None:
    log = torch.tensor([0.5, 0.25, 0.8]).log().tolist()
    _, metrics, _ = loss_of([log], [torch.tensor([0.5, 0.28, 0.1]).log().tolist()], [[1, 1, 0]])
    assert metrics["actor/rollout_prob_gap_max"] == pytest.approx(0.03, abs=1e-6)
    assert metrics["actor/rollout_prob_gap_share"] == 1.0


def test_equal_probabilities_have_no_gap() -> None:
    _, metrics, _ = loss_of([[-1.0, -2.0]], [[-1.0, -2.0]], [[1, 1]])
    assert (metrics["actor/rollout_prob_gap_max"], metrics["actor/rollout_prob_gap_share"]) == (0.0, 0.0)


def test_the_limit_of_the_gap_comes_from_the_config(monkeypatch: pytest.MonkeyPatch) -> None:
    log, off = [[torch.tensor(0.5).log().item()]], [[torch.tensor(0.505).log().item()]]
    assert loss_of(log, off, [[1]])[1]["actor/rollout_prob_gap_share"] == 1.0
    monkeypatch.setenv("MAESTRO_MAX_GAP", "0.01")
    assert loss_of(log, off, [[1]])[1]["actor/rollout_prob_gap_share"] == 0.0


def test_the_loss_is_minus_the_mean_advantage_while_the_policy_has_not_moved() -> None:
    loss, _, _ = loss_of([[-1.0, -2.0, -3.0]], [[-1.0, -2.0, -3.0]], [[1, 1, 0]], advantage=0.5)
    assert loss.item() == pytest.approx(-0.5)


def test_one_trajectory_without_policy_tokens_changes_nothing() -> None:
    alone, _, _ = loss_of([[-1.0, -2.0]], [[-1.1, -2.1]], [[1, 1]])
    beside, _, actor = loss_of([[-1.0, -2.0], [0.0, 0.0]], [[-1.1, -2.1], [-9.0, -9.0]], [[1, 1], [0, 0]])
    assert beside.item() == pytest.approx(alone.item())
    beside.backward()
    assert actor.grad is not None and actor.grad[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("tokens", [None, 0], ids=["count unknown", "count 0"])
def test_a_batch_without_any_policy_token_has_loss_zero(tokens: int | None) -> None:
    loss, metrics, actor = loss_of([[0.0, 0.0]] * 2, [[-3.0, -4.0]] * 2, [[0, 0]] * 2, tokens=tokens)
    loss.backward()
    assert loss.item() == 0.0
    assert actor.grad is not None and actor.grad.abs().sum().item() == 0.0
    assert all(value == 0.0 for value in metrics.values())


def test_what_stands_on_masked_positions_cannot_reach_the_loss() -> None:
    loss, metrics, actor = loss_of([[-1.0, float("nan")], [-1.0, float("-inf")]], [[-1.0, -2.0]] * 2, [[1, 0]] * 2)
    loss.backward()
    assert loss.item() == pytest.approx(-1.0)
    assert metrics["actor/ppo_kl"] == 0.0
    assert actor.grad is not None and torch.isfinite(actor.grad).all()


def test_verl_finds_the_loss_by_its_name() -> None:
    from verl.trainer.ppo.core_algos import get_policy_loss_fn

    assert get_policy_loss_fn("maestro_clip") is clipped_loss_with_gap


def test_sure_tokens_take_praise_and_no_blame() -> None:
    probabilities = torch.tensor([[0.95, 0.5, 0.95, 0.5]])
    advantages = torch.tensor([[-1.0, -1.0, 2.0, 2.0]])
    assert policy_loss.spare_the_sure(advantages, probabilities.log(), 0.8).tolist() == [[0.0, -1.0, 2.0, 2.0]]
    assert policy_loss.spare_the_sure(advantages, probabilities.log(), 1.0).tolist() == [[-1.0, -1.0, 2.0, 2.0]]


def test_gspo_clips_one_ratio_a_trajectory_where_the_usual_loss_clips_each_token() -> None:
    from verl.workers.config import FSDPActorConfig

    # ratios 2 and 0.5 of two policy tokens: their geometric mean is 1, so nothing of the trajectory is clipped
    old, new = [[-1.0, -1.0, -5.0]], [[-1.0 + 0.6931472, -1.0 - 0.6931472, -9.0]]
    usual, _, _ = loss_of(old, new, [[1, 1, 0]])
    assert usual.item() == pytest.approx(-(1.2 + 0.5) / 2)
    actor = torch.tensor(new, requires_grad=True)
    loss: Any = policy_loss.gspo_loss_with_gap
    whole, metrics = loss(
        torch.tensor(old), actor, torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[True, True, False]]),
        loss_agg_mode="seq-mean-token-mean",
        config=FSDPActorConfig(strategy="fsdp2", rollout_n=2, ppo_micro_batch_size_per_gpu=1),
    )  # fmt: skip
    assert whole.item() == pytest.approx(-1.0, abs=1e-6)
    assert metrics["actor/pg_clipfrac"] == 0.0
    whole.backward()
    assert actor.grad is not None and actor.grad.tolist()[0] == pytest.approx([-0.5, -0.5, 0.0], abs=1e-6)


def test_importance_weights_are_cut_at_their_cap_and_weigh_the_loss() -> None:
    from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_weights

    ratios = torch.tensor([[0.5, 4.0, 1.0]])
    weights, _ = compute_rollout_correction_weights(
        ratios.log(), torch.tensor([[1.0, 1.0, 0.0]]), rollout_is="token", rollout_is_threshold=2.0
    )
    assert weights.tolist()[0] == pytest.approx([0.5, 2.0, 0.0], abs=1e-6)
    same = torch.tensor([[-1.0, -2.0, -3.0]])
    loss, _ = clipped_loss_with_gap(
        same, same.clone(), torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[True, True, False]]),
        config=ActorSettings(), rollout_is_weights=weights,
    )  # fmt: skip
    assert loss.item() == pytest.approx(-1.25)
