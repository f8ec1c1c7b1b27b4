"""`Architecture`: the shape of a Qwen3-VL policy, and the counts that follow from it: weights, cache, work.

One idea: everything is counted from config.json, never from weights, so a model that is not downloaded can be planned.
The counts follow transformers' `Qwen3VLForConditionalGeneration` layer by layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry.errors import UserFault


@dataclass(frozen=True)
class Vision:
    """The picture encoder. `mergers`: the final one and those of DeepStack."""

    depth: int
    hidden: int
    intermediate: int
    out: int
    patch: int
    merge: int
    temporal: int
    channels: int
    positions: int
    mergers: int

    @property
    def per_block(self) -> int:
        h, i = self.hidden, self.intermediate
        return (3 * h * h + 3 * h) + (h * h + h) + (h * i + i) + (i * h + h) + 4 * h

    @property
    def parameters(self) -> int:
        """Weights of patch embedding, positions, blocks and mergers."""
        h, wide = self.hidden, self.hidden * self.merge**2
        patches = self.channels * self.temporal * self.patch**2 * h + h
        merger = wide * wide + wide + wide * self.out + self.out
        norms = 2 * h + (self.mergers - 1) * 2 * wide  # DeepStack's mergers normalise after the shuffle
        return patches + self.positions * h + self.depth * self.per_block + self.mergers * merger + norms


@dataclass(frozen=True)
class Architecture:
    """Shape of the language model and its picture encoder; `source` says where it was read.

    min_pixels, max_pixels: the processor's limits to a picture's area (height x width), None where nobody says.
    """

    source: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    context: int
    vision: Vision | None
    min_pixels: int | None = None
    max_pixels: int | None = None

    @property
    def per_layer(self) -> int:
        """Weights of one decoder layer."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads) + 2 * self.head_dim
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def embedding(self) -> int:
        """Weights of one vocabulary matrix."""
        return self.vocabulary * self.hidden

    @property
    def text_parameters(self) -> int:
        """Weights of the language model."""
        return (1 if self.tied else 2) * self.embedding + self.layers * self.per_layer + self.hidden

    @property
    def parameters(self) -> int:
        """All weights."""
        return self.text_parameters + (self.vision.parameters if self.vision else 0)

    @property
    def root_parameters(self) -> int:
        """Weights outside decoder layers and vision blocks: they form one FSDP unit that stays gathered."""
        blocks = self.layers * self.per_layer
        blocks += self.vision.depth * self.vision.per_block if self.vision else 0
        return self.parameters - blocks

    @property
    def kv_per_token(self) -> int:
        """Cached numbers (not bytes) of one token over all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim

    def lora_parameters(self, rank: int, vision: bool) -> int:
        """Weights of adapters of `rank` on every linear layer of the decoder (and of the vision blocks)."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        sides = 2 * (self.hidden + q) + 2 * (self.hidden + kv) + 3 * (self.hidden + self.intermediate)
        count = self.layers * rank * sides
        if vision and self.vision:
            v = self.vision
            count += v.depth * rank * (v.hidden + 3 * v.hidden + 2 * v.hidden + 2 * (v.hidden + v.intermediate))
        return count

    def text_flops(self, tokens: float, context: float) -> float:
        """Floating-point operations of one forward pass over `tokens`, each seeing `context` earlier tokens on
        average: 2 a weight (the vocabulary matrix once), and scores and sums of attention."""
        weights = self.layers * self.per_layer + self.embedding
        return tokens * (2.0 * weights + 4.0 * self.layers * self.heads * self.head_dim * context)

    def vision_flops(self, image_tokens: float) -> float:
        """The same for a picture that gives `image_tokens`; its patches all see one another."""
        v = self.vision
        if v is None:
            return 0.0
        patches = image_tokens * v.merge**2
        merged = self.vision_merger_weights * image_tokens
        return 2.0 * (patches * v.depth * v.per_block + merged) + 4.0 * v.depth * v.hidden * patches**2

    @property
    def vision_merger_weights(self) -> int:
        v = self.vision
        return 0 if v is None else v.mergers * (v.hidden * v.merge**2) * (v.hidden * v.merge**2 + v.out)


def from_config(
    config: Mapping[str, Any], source: str, *, min_pixels: int | None = None, max_pixels: int | None = None
) -> Architecture:
    """The architecture that a config.json states. Raises UserFault for a key that is missing or not a number,
    and for experts in the layers or types other than Qwen-VL's plain decoder."""
    text = config.get("text_config", config)
    if not isinstance(text, Mapping):
        raise UserFault("text_config is not a mapping", where=source, fix="give a model's own config.json")
    if any(key in text for key in ("num_experts", "num_local_experts", "n_routed_experts")):
        raise UserFault("a mixture of experts cannot be planned", where=source, fix="plan a dense policy")
    heads = _number(text, "num_attention_heads", source)
    hidden = _number(text, "hidden_size", source)
    vision = config.get("vision_config")
    return Architecture(
        source=source,
        layers=_number(text, "num_hidden_layers", source),
        hidden=hidden,
        intermediate=_number(text, "intermediate_size", source),
        heads=heads,
        kv_heads=_number(text, "num_key_value_heads", source, heads),
        head_dim=_number(text, "head_dim", source, hidden // heads),
        vocabulary=_number(text, "vocab_size", source),
        tied=bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))),
        context=_number(text, "max_position_embeddings", source, 32768),
        vision=_vision(vision, source) if isinstance(vision, Mapping) else None,
        min_pixels=min_pixels,
        max_pixels=max_pixels,
    )


def _vision(config: Mapping[str, Any], source: str) -> Vision:
    deep = config.get("deepstack_visual_indexes", ())
    return Vision(
        depth=_number(config, "depth", source),
        hidden=_number(config, "hidden_size", source),
        intermediate=_number(config, "intermediate_size", source),
        out=_number(config, "out_hidden_size", source),
        patch=_number(config, "patch_size", source, 16),
        merge=_number(config, "spatial_merge_size", source, 2),
        temporal=_number(config, "temporal_patch_size", source, 2),
        channels=_number(config, "in_channels", source, 3),
        positions=_number(config, "num_position_embeddings", source, 2304),
        mergers=1 + (len(deep) if isinstance(deep, (list, tuple)) else 0),
    )


def _number(config: Mapping[str, Any], key: str, source: str, default: int | None = None) -> int:
    value = config.get(key)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**40:
        state = "is missing" if key not in config else f"is {value!r}, not a number of 1 or more"
        raise UserFault(f"{key} {state}", where=source, fix="give a Qwen3-VL model's own config.json")
    return value
