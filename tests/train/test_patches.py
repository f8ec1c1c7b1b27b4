"""What is left out on a CPU changes nothing but seconds: features, gradients and requests stay what they were."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from train.platform.patches import distinct


def test_patches_and_their_gradients_are_those_of_the_convolution(monkeypatch: Any) -> None:
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionPatchEmbed

    from train.platform.patches import embed_patches_by_product

    monkeypatch.setattr(Qwen3VLVisionPatchEmbed, "forward", Qwen3VLVisionPatchEmbed.forward)  # put back behind the test
    torch.manual_seed(0)
    shape = SimpleNamespace(patch_size=16, temporal_patch_size=2, in_channels=3, hidden_size=64)
    layer = Qwen3VLVisionPatchEmbed(shape)
    patches = torch.randn(20, 3 * 2 * 16 * 16)

    def outcome() -> tuple[torch.Tensor, torch.Tensor]:
        layer.zero_grad()
        found = layer(patches)
        found.square().sum().backward()
        assert layer.proj.weight.grad is not None
        return found.detach(), layer.proj.weight.grad.clone()

    convolution = outcome()
    embed_patches_by_product()
    product = outcome()
    assert convolution[0].shape == product[0].shape == (20, 64)
    assert torch.allclose(convolution[0], product[0], atol=1e-5)
    assert torch.allclose(convolution[1], product[1], rtol=1e-4, atol=1e-3)


def test_equal_pictures_are_found_and_pictures_of_equal_sum_are_not_taken_for_equal() -> None:
    one, two = torch.tensor([[1.0, 2.0]]), torch.tensor([[2.0, 1.0]])
    assert distinct([one, two, one.clone(), torch.ones(1, 2), two.clone()]) == ([0, 1, 3], [0, 1, 0, 2, 1])


def test_a_picture_without_a_sum_is_nobodys_copy() -> None:
    broken = torch.tensor([[float("nan"), 1.0]])
    assert distinct([broken, broken.clone()]) == ([0, 1], [0, 1])


def test_shared_pictures_are_encoded_once_with_the_same_features_and_gradients(monkeypatch: Any) -> None:
    from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

    from train.platform.patches import encode_each_picture_once

    monkeypatch.setattr(Qwen3VLVisionModel, "forward", Qwen3VLVisionModel.forward)
    torch.manual_seed(0)
    config = Qwen3VLVisionConfig(
        depth=2, hidden_size=32, intermediate_size=64, num_heads=2, out_hidden_size=48, patch_size=4,
        num_position_embeddings=16, deepstack_visual_indexes=[0],
    )  # fmt: skip
    tower = Qwen3VLVisionModel(config)
    small, large = torch.randn(16, 3 * 2 * 4 * 4), torch.randn(32, 3 * 2 * 4 * 4)
    pictures = torch.cat([small, large, small, large, small])
    grid = torch.tensor([[1, 4, 4], [1, 4, 8], [1, 4, 4], [1, 4, 8], [1, 4, 4]])
    looked_at: list[int] = []
    tower.patch_embed.register_forward_hook(lambda _, inputs, __: looked_at.append(len(inputs[0])))
    weights = torch.linspace(0.1, 1.0, 28).unsqueeze(-1)

    def outcome() -> list[torch.Tensor]:
        tower.zero_grad()
        seen = tower(pictures, grid_thw=grid)
        ((seen.pooler_output + seen.deepstack_features[0]) * weights).sum().backward()
        gradient = tower.patch_embed.proj.weight.grad
        assert gradient is not None
        return [seen.last_hidden_state, seen.pooler_output, seen.deepstack_features[0], gradient.clone()]

    apart = outcome()
    encode_each_picture_once()
    together = outcome()
    assert looked_at == [112, 48]
    assert [tuple(one.shape) for one in together[:3]] == [(112, 32), (28, 48), (28, 48)]
    for one, other in zip(apart, together, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def test_verls_step_works_on_the_batch_itself(monkeypatch: Any) -> None:
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    from train.platform.patches import keep_batches_in_place

    seen: list[Any] = []
    monkeypatch.setattr(
        FSDPEngineWithLMHead, "forward_step", lambda self, batch, *rest: seen.append((batch.to("cpu"), rest))
    )
    keep_batches_in_place()
    keep_batches_in_place()  # once is enough, twice does no harm
    batch = object()
    FSDPEngineWithLMHead.forward_step(SimpleNamespace(), batch, "loss", False)  # type: ignore[arg-type]
    assert seen == [(batch, ("loss", False))]


@pytest.mark.parametrize(("counts", "calls"), [({"image": 0}, 0), ({}, 0), ({"image": 1}, 1)])
def test_the_processor_runs_only_where_a_picture_is_not_in_the_cache(
    monkeypatch: Any, counts: dict[str, int], calls: int
) -> None:
    from vllm.multimodal.processing.processor import BaseMultiModalProcessor

    from train.platform.patches import skip_idle_processor

    ran: list[Any] = []
    monkeypatch.setattr(BaseMultiModalProcessor, "_apply_hf_processor_mm_only", lambda self, items, **_: ran.append(1))
    skip_idle_processor()
    items = SimpleNamespace(get_all_counts=lambda: counts)
    BaseMultiModalProcessor._apply_hf_processor_mm_only(SimpleNamespace(), items, tokenization_kwargs={})  # type: ignore[arg-type]
    assert len(ran) == calls
