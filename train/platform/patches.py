"""What verl, vLLM and transformers do needlessly on a CPU, left out. Every result stays what it was but for rounding.

One idea: each function takes the place of one method, of this process, and may be called again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any


def install() -> None:
    """All of them; called in verl's processes before they compute anything."""
    embed_patches_by_product()
    encode_each_picture_once()
    keep_batches_in_place()
    if "vllm" in sys.modules:  # the server of the rollout engine; the others need not load it
        skip_idle_processor()


def embed_patches_by_product() -> None:
    """Qwen3-VL's patch embedding as a product of flat patches and flat weights, which a convolution whose stride is
    its kernel is; on a CPU the gradient of the convolution takes five times as long."""
    from torch.nn.functional import linear
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionPatchEmbed

    def forward(self: Any, hidden_states: Any) -> Any:
        weight = self.proj.weight
        flat = hidden_states.reshape(-1, weight[0].numel()).to(weight.dtype)
        return linear(flat, weight.flatten(1), self.proj.bias)

    Qwen3VLVisionPatchEmbed.forward = forward  # type: ignore[method-assign]


def encode_each_picture_once() -> None:
    """Qwen3-VL's vision tower looks once a pass at a picture that several rollouts of a group share; the gradients of
    all of them reach it through the copies of what it saw."""
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

    def around(theirs: Callable[..., Any]) -> Callable[..., Any]:
        def forward(self: Any, hidden_states: Any, grid_thw: Any, **named: Any) -> Any:
            import torch

            pictures = hidden_states.split(grid_thw.prod(-1).tolist())
            first, place = distinct(pictures)
            if len(first) == len(pictures):
                return theirs(self, hidden_states, grid_thw, **named)
            few = grid_thw[first]
            seen = theirs(self, torch.cat([pictures[i] for i in first]), few, **named)
            patches = few.prod(-1)
            tokens = patches // self.spatial_merge_size**2

            def copied(features: Any, lengths: Any) -> Any:
                parts = features.split(lengths.tolist())
                return torch.cat([parts[i] for i in place])

            seen.last_hidden_state = copied(seen.last_hidden_state, patches)
            seen.pooler_output = copied(seen.pooler_output, tokens)
            seen.deepstack_features = [copied(layer, tokens) for layer in seen.deepstack_features]
            return seen

        return forward

    _replace(Qwen3VLVisionModel, "forward", around)


def distinct(pictures: Any) -> tuple[list[int], list[int]]:
    """(indices of the first of equal pictures, for each picture its place among those), tensors [patches, values]."""
    import torch

    first: list[int] = []
    place: list[int] = []
    by_look: dict[tuple[Any, ...], list[int]] = {}  # cheap and not unique: equality decides
    for index, picture in enumerate(pictures):
        look = (picture.shape, float(picture.sum()))
        alike = by_look.setdefault(look, [])
        for known in alike:
            if torch.equal(pictures[first[known]], picture):
                place.append(known)
                break
        else:
            alike.append(len(first))
            place.append(len(first))
            first.append(index)
    return first, place


def keep_batches_in_place() -> None:
    """verl's actor does not copy a batch to the device where it is."""
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    def around(theirs: Callable[..., Any]) -> Callable[..., Any]:
        def forward_step(self: Any, micro_batch: Any, *rest: Any, **named: Any) -> Any:
            return theirs(self, _InPlace(micro_batch), *rest, **named)

        return forward_step

    _replace(FSDPEngineWithLMHead, "forward_step", around)


class _InPlace:
    """A batch whose `to` is the batch: all that verl's step asks of it before it goes on with the result."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def to(self, device: Any) -> Any:
        return self._batch


def skip_idle_processor() -> None:
    """vLLM does not run the processor on no pictures when all of a request's are in its cache."""
    from transformers import BatchFeature
    from vllm.multimodal.processing.processor import BaseMultiModalProcessor

    def around(theirs: Callable[..., Any]) -> Callable[..., Any]:
        def apply(self: Any, mm_items: Any, *rest: Any, **named: Any) -> Any:
            if not any(mm_items.get_all_counts().values()):
                return BatchFeature({})
            return theirs(self, mm_items, *rest, **named)

        return apply

    _replace(BaseMultiModalProcessor, "_apply_hf_processor_mm_only", around)


def _replace(owner: type, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    theirs = getattr(owner, name)
    if not hasattr(theirs, "replaces"):
        ours: Any = wraps(theirs)(around(theirs))
        ours.replaces = theirs
        setattr(owner, name, ours)
