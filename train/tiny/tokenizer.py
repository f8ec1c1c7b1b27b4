"""The tiny policy's tokenizer: byte-level BPE trained on the embedded world's own sentences.

One idea: protocol tags and the heads of a call (`Expert@@`, `Skill:`) are single tokens, everything else is learned
or falls back to bytes, so any question can be written and a call stays short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
OPENING = ("<think>", "<search>", "<information>", "<answer>")
CLOSING = ("</think>", "</search>", "</information>", "</answer>")

# The same turn structure as Qwen3-VL's template, without its tool-call branches.
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' or 'image' in c or 'image_url' in c %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif c['type'] == 'video' or 'video' in c %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif 'text' in c %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{% if not (loop.last and continue_final_message is defined and continue_final_message) %}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tokenizer(
    texts: Iterable[str], experts: Sequence[str], skills: Sequence[str], vocab_size: int = 768
) -> PreTrainedTokenizerFast:
    """Train the tokenizer on `texts`; `experts` and `skills` are the registry's names.

    Returns a fast tokenizer with at most `vocab_size` learned tokens plus one token a tag and a name.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    # Digits stay apart: a number is copied digit by digit, whatever its value.
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\d"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    core.add_tokens([AddedToken(t, special=False, normalized=False) for t in OPENING])
    # A closing tag takes the blank before it along: one token, not two.
    core.add_tokens([AddedToken(t, special=False, normalized=False, lstrip=True) for t in CLOSING])
    heads = [f" {name}@@" for name in experts] + [f"{name}:" for name in skills]
    core.add_tokens([AddedToken(t, special=False, normalized=False) for t in heads])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL),
        extra_special_tokens={
            "image_token": "<|image_pad|>",
            "video_token": "<|video_pad|>",
            "vision_bos_token": "<|vision_start|>",
            "vision_eos_token": "<|vision_end|>",
        },
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
