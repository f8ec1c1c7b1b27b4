"""What the optimiser does with a batch that teaches nothing."""

from __future__ import annotations

import torch

from train.optimizer import AdamWUnlessFlat


def moved(gradient: float | None, *, after: float | None = 1.0) -> tuple[float, float]:
    """The weight 1.0 before and after a step with `gradient`, when one with `after` came first."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = AdamWUnlessFlat([weight], lr=0.1, weight_decay=0.1)
    if after is not None:
        weight.grad = torch.full((3,), after)
        optimizer.step()
    before = weight[0].item()
    weight.grad = None if gradient is None else torch.tensor([0.0, 0.0, gradient])
    optimizer.step()
    return before, weight[0].item()


def test_a_batch_without_gradient_moves_nothing_although_there_is_momentum() -> None:
    before, after = moved(0.0)
    assert before == after and before < 1.0


def test_a_model_without_gradients_is_left_alone() -> None:
    before, after = moved(None)
    assert before == after


def test_one_gradient_above_zero_moves_every_weight() -> None:
    before, after = moved(1e-6)
    assert after < before


def test_state_and_step_count_stay_as_they_were() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = AdamWUnlessFlat([weight], lr=0.1)
    weight.grad = torch.ones(2)
    optimizer.step()
    saved = {key: value.clone() for key, value in optimizer.state[weight].items()}
    weight.grad = torch.zeros(2)
    optimizer.step()
    assert all(torch.equal(saved[key], value) for key, value in optimizer.state[weight].items())
    assert saved["step"].item() == 1
