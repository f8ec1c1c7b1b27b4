"""A Qwen3-VL of about 1.2 million parameters with random weights, saved as a Hugging Face folder with its processor.

One idea: same architecture, classes and files as Qwen3-VL-4B, only smaller, so that nothing downstream (vLLM, verl,
transformers) can tell the tiers apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True)
class TinyShape:
    """Sizes of the tiny policy. `pixels` bounds the image's area after resizing (h x w, multiples of 32)."""

    hidden: int = 128
    intermediate: int = 384
    layers: int = 4
    heads: int = 4
    vision_hidden: int = 64
    vision_depth: int = 2
    max_pixels: int = 128 * 128
    min_pixels: int = 96 * 96


def build_tiny_policy(
    folder: Path, tokenizer: PreTrainedTokenizerFast, seed: int, shape: TinyShape | None = None
) -> int:
    """Write model, tokenizer and processor to `folder`; returns the number of parameters."""
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    shape = shape or TinyShape()

    def token(name: str) -> int:
        return int(tokenizer.convert_tokens_to_ids(name))  # type: ignore[arg-type]

    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": shape.hidden,
            "intermediate_size": shape.intermediate,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": max(1, shape.heads // 2),
            "head_dim": shape.hidden // shape.heads,
            "max_position_embeddings": 8192,
            "rope_parameters": {
                "rope_type": "default", "rope_theta": 1e6, "mrope_section": [6, 5, 5], "mrope_interleaved": True,
            },
            "pad_token_id": token("<|endoftext|>"),
            "bos_token_id": token("<|endoftext|>"),
            "eos_token_id": token("<|im_end|>"),
            "tie_word_embeddings": True,
        },
        vision_config={
            "depth": shape.vision_depth,
            "hidden_size": shape.vision_hidden,
            "intermediate_size": shape.vision_hidden * 2,
            "num_heads": 2,
            "out_hidden_size": shape.hidden,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "num_position_embeddings": 256,
            "deepstack_visual_indexes": [0],
            "initializer_range": 0.06,  # at 0.02 it takes three times as long to tell kinds of pictures apart
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(config)
    model.generation_config.eos_token_id = token("<|im_end|>")
    model.generation_config.pad_token_id = token("<|endoftext|>")
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    common = {
        "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
        "image_mean": [1.0] * 3, "image_std": [0.3] * 3,  # white paper is 0: what is drawn on it stands out
        "size": {"shortest_edge": shape.min_pixels, "longest_edge": shape.max_pixels},
    }  # fmt: skip
    processor = Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(**common),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(**common),
        chat_template=tokenizer.chat_template,
    )
    processor.save_pretrained(folder)
    return sum(p.numel() for p in model.parameters())
