"""The vision tower's first layer, made a product, computes what the convolution computes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch


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
