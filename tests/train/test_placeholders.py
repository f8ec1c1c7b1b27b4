"""The actor forbids what the rollout engine forbids, so that both compute one distribution."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from train.placeholders import forbid_placeholders, silence


def test_silenced_ids_have_no_probability_and_the_rest_is_renormalised() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.2, 0.3]]))
    silence(logits, [1])
    assert torch.allclose(logits.softmax(-1), torch.tensor([[0.625, 0.0, 0.375]]))


def test_silenced_ids_have_no_gradient_and_the_entropy_is_a_number() -> None:
    weight = torch.tensor([0.0, 4.0, 0.0], requires_grad=True)
    logits = weight * 1.0
    silence(logits, [1])
    chances = logits.softmax(-1)
    entropy = logits.logsumexp(-1) - (chances * logits).sum(-1)
    (entropy + chances[0]).backward()
    assert entropy.item() == pytest.approx(0.6931, abs=1e-4)
    assert weight.grad is not None
    assert weight.grad.tolist() == [0.25, 0.0, -0.25]


def test_verls_actor_works_on_logits_without_placeholders(monkeypatch: Any) -> None:
    from verl.workers.engine.fsdp import transformer_impl

    actor: Any = transformer_impl.FSDPEngineWithLMHead
    seen: list[torch.Tensor] = []
    monkeypatch.setattr(actor, "prepare_model_outputs", lambda self, output, *rest: seen.append(output.logits))
    forbid_placeholders()
    forbid_placeholders()  # once is enough, twice does no harm
    processor = SimpleNamespace(image_token_id=2, video_token_id=3)
    engine: Any = SimpleNamespace(model_config=SimpleNamespace(get_processor=lambda: processor))
    actor.prepare_model_outputs(engine, SimpleNamespace(logits=torch.zeros(1, 2, 5)), {}, None, None)
    assert seen[0].tolist() == [[[0.0, 0.0, -1e4, -1e4, 0.0]] * 2]


def test_an_actor_of_words_alone_keeps_its_logits(monkeypatch: Any) -> None:
    from verl.workers.engine.fsdp import transformer_impl

    actor: Any = transformer_impl.FSDPEngineWithLMHead
    seen: list[torch.Tensor] = []
    monkeypatch.setattr(actor, "prepare_model_outputs", lambda self, output, *rest: seen.append(output.logits))
    forbid_placeholders()
    engine: Any = SimpleNamespace(model_config=SimpleNamespace(get_processor=lambda: SimpleNamespace()))
    actor.prepare_model_outputs(engine, SimpleNamespace(logits=torch.zeros(1, 1, 3)), {}, None, None)
    assert seen[0].tolist() == [[[0.0, 0.0, 0.0]]]
