"""The tiny policy's tokenizer: what is one token, and that any text comes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orchestrator.encoding import ProcessorTokenizer
from train.tiny.tokenizer import CLOSING, OPENING, SPECIAL, build_tokenizer

TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
PLAIN = build_tokenizer(["How many circles are there?"], ["Counter"], ["Skill"], 300)


def pieces(tokenizer: Any, text: str) -> list[str]:
    return [tokenizer.decode([i]) for i in tokenizer.encode(text, add_special_tokens=False)]


@settings(max_examples=300, deadline=None)
@given(TEXT)
def test_any_text_comes_back(text: str) -> None:
    assume(not any(tag in text for tag in CLOSING))  # they take the blank before them along
    codec = ProcessorTokenizer(PLAIN)
    assert codec.decode(codec.encode(text)) == text


@pytest.mark.parametrize(
    "text", ["左肺😀 e\u0301 \u200d", " a  b\t\n\nc ", "3.14 = 22/7", "<b> </b> <|x|> a@@b: c", "\x00\x7f"]
)
def test_odd_texts_come_back(tiny_tokenizer: Any, text: str) -> None:
    codec = ProcessorTokenizer(tiny_tokenizer)
    assert codec.decode(codec.encode(text)) == text


def test_digits_stay_apart(tiny_tokenizer: Any) -> None:
    assert pieces(tiny_tokenizer, "12,345") == ["1", "2", ",", "3", "4", "5"]


@pytest.mark.parametrize("token", [*SPECIAL, *OPENING, *CLOSING, " Counter@@", " Chart-Reader@@", "Chart_Skill:"])
def test_tags_and_heads_of_calls_are_one_token(tiny_tokenizer: Any, token: str) -> None:
    assert len(tiny_tokenizer.encode(token, add_special_tokens=False)) == 1


def test_a_call_is_two_heads_and_its_question(tiny_tokenizer: Any) -> None:
    call = "<search> Chart-Reader@@Chart_Skill: 12</search>"
    assert pieces(tiny_tokenizer, call) == [
        "<search>", " Chart-Reader@@", "Chart_Skill:", *pieces(tiny_tokenizer, " 12"), "</search>",
    ]  # fmt: skip


def test_a_blank_before_a_closing_tag_is_part_of_the_tag(tiny_tokenizer: Any) -> None:
    def encode(text: str) -> list[int]:
        return tiny_tokenizer.encode(text, add_special_tokens=False)

    assert encode("7 </answer>") == encode("7</answer>")
    assert encode("7 </answer>")[-1] == tiny_tokenizer.convert_tokens_to_ids("</answer>")


def test_the_end_of_a_turn_ends_generation(tiny_tokenizer: Any) -> None:
    assert (tiny_tokenizer.eos_token, tiny_tokenizer.pad_token) == ("<|im_end|>", "<|endoftext|>")
    assert tiny_tokenizer.unk_token_id is None


def test_the_vocabulary_is_what_was_asked_for_and_one_token_a_name(tiny_tokenizer: Any) -> None:
    assert len(tiny_tokenizer) <= 320 + len(OPENING) + len(CLOSING) + 4


def test_the_same_texts_give_the_same_tokenizer() -> None:
    again = build_tokenizer(["How many circles are there?"], ["Counter"], ["Skill"], 300)
    assert again.get_vocab() == PLAIN.get_vocab()


def test_the_template_puts_one_placeholder_a_picture(tiny_tokenizer: Any) -> None:
    message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Why?"}]}
    text = tiny_tokenizer.apply_chat_template([message], tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Why?<|im_end|>\n<|im_start|>assistant\n"
    )
