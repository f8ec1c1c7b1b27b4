"""The vision tower's first layer as one matrix product.

One idea: a convolution whose stride is its kernel is a product of flat patches and flat weights. The result is the same
but for rounding; on a CPU the gradient of the convolution takes five times as long.
"""

from __future__ import annotations

from typing import Any


def embed_patches_by_product() -> None:
    """Makes Qwen3-VL's patch embedding of this process a product. May be called again."""
    from torch.nn.functional import linear
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionPatchEmbed

    def forward(self: Any, hidden_states: Any) -> Any:
        weight = self.proj.weight
        flat = hidden_states.reshape(-1, weight[0].numel()).to(weight.dtype)
        return linear(flat, weight.flatten(1), self.proj.bias)

    Qwen3VLVisionPatchEmbed.forward = forward  # type: ignore[method-assign]
