"""The loss of a batch that several ranks share: as if one rank had held all of it.

Each rank adds up its micro-batches, FSDP and verl then take the mean over ranks. So every denominator must be the whole
batch's, times the number of ranks, whatever lies where.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.workers.config import FSDPActorConfig

from train import policy_loss

# policy tokens of eight rollouts of at most six; the fourth failed and teaches nothing
TOKENS = (6, 1, 3, 0, 2, 5, 4, 2)
LOSSES = [(policy_loss.NAME, "token-mean"), (policy_loss.GSPO, "seq-mean-token-mean")]
PLACES = {
    "whole on one rank": [[range(8)]],
    "one rank, micro-batches": [[range(3), range(3, 8)]],
    "two ranks, equal halves": [[range(4)], [range(4, 8)]],
    "two ranks, long and short rollouts apart, micro-batches": [[(0, 5), (6, 2)], [(1, 4), (7, 3)]],
    "two ranks, one of them with a micro-batch that teaches nothing": [[(0, 1, 2)], [(3,), (4, 5, 6, 7)]],
    "four ranks, one of them with nothing to learn from": [[(0, 1)], [(2, 4)], [(3,)], [(5, 6, 7)]],
}


def shared_loss(name: str, mode: str, ranks: list[list[Any]]) -> tuple[float, list[list[float]]]:
    """The mean over ranks of the loss, and the gradient that the optimiser would see [8, 6]."""
    made = torch.Generator().manual_seed(7)
    mask = torch.arange(6)[None, :] < torch.tensor(TOKENS)[:, None]
    old = -torch.rand(8, 6, generator=made) - 0.1
    new = (old + 0.5 * (torch.rand(8, 6, generator=made) - 0.5)).requires_grad_()  # some ratios are clipped
    advantages = torch.randn(8, 1, generator=made) * mask
    config = FSDPActorConfig(strategy="fsdp2", rollout_n=2, ppo_micro_batch_size_per_gpu=1, loss_agg_mode=mode)
    config.global_batch_info.update(dp_size=len(ranks), batch_num_tokens=sum(TOKENS), global_batch_size=len(TOKENS))
    loss_of: Any = get_policy_loss_fn(name)
    total = torch.zeros(())
    for rank in ranks:
        for micro in (list(rows) for rows in rank):
            loss, _ = loss_of(
                old_log_prob=old[micro], log_prob=new[micro], advantages=advantages[micro],
                response_mask=mask[micro], loss_agg_mode=mode, config=config,
            )  # fmt: skip
            total = total + loss / len(ranks)
    total.backward()
    assert new.grad is not None
    return total.item(), new.grad.tolist()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("name", "mode"), LOSSES)
def test_loss_and_gradient_are_the_same_wherever_the_rollouts_lie(name: str, mode: str, place: str) -> None:
    whole, gradient = shared_loss(name, mode, PLACES["whole on one rank"])
    loss, found = shared_loss(name, mode, PLACES[place])
    assert abs(whole) > 0.01
    assert loss == pytest.approx(whole, abs=1e-6)
    for row, expected in zip(found, gradient, strict=True):
        assert row == pytest.approx(expected, abs=1e-7)


def test_a_rollout_weighs_by_its_tokens_and_not_by_the_rank_it_lies_on() -> None:
    _, gradient = shared_loss(policy_loss.NAME, "token-mean", PLACES["two ranks, equal halves"])
    # nothing of a failed rollout, nor behind the end of one, is learned from
    assert gradient[3] == [0.0] * 6
    assert gradient[1][1:] == [0.0] * 5
