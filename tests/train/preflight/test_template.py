"""The preflight of tokenizer and chat template: nothing that was said goes unnoticed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tokenizers import normalizers

from registry.errors import UserFault
from train.preflight.template import check_tokenizer, check_turns, prompt_text
from train.tiny.tokenizer import CHAT_TEMPLATE

CONTENT = (
    "{% macro text(m) %}{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ c['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{% endmacro %}"
)
ROUNDS = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ CONTENT }}<|im_end|>\n{% endfor %}"
OPEN = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
# As published reasoning models do it: what stands before </think> goes from all turns but the last.
DROPPING = "text(m).split('</think>')[-1].lstrip('\n') if m['role'] == 'assistant' and not loop.last else text(m)"


def template(content: str, opening: str = OPEN) -> str:
    return CONTENT + ROUNDS.replace("CONTENT", content) + opening


@pytest.fixture
def with_template(tiny_tokenizer: Any) -> Any:
    def make(chat_template: str) -> Any:
        tokenizer = copy.deepcopy(tiny_tokenizer)
        tokenizer.chat_template = chat_template
        return tokenizer

    return make


def turns(tokenizer: Any) -> None:
    check_turns(tokenizer, tokenizer, prompt_text(tokenizer, None))


@pytest.mark.parametrize(
    "chat_template",
    [
        CHAT_TEMPLATE,
        template("text(m)"),
        # the template itself begins the thought
        template("text(m)", OPEN.replace("assistant\n", "assistant\n<think>\n")),
    ],
)
def test_a_template_that_keeps_all_turns_passes(with_template: Any, chat_template: str) -> None:
    turns(with_template(chat_template))


def test_a_template_that_drops_earlier_thinking_is_refused_with_the_first_differing_token(with_template: Any) -> None:
    with pytest.raises(UserFault, match="drops earlier thinking: after turn 1, token") as fault:
        turns(with_template(template(DROPPING)))
    assert "'<think>\\n" in fault.value.what and "'<search>" in fault.value.what
    assert str(fault.value.fix).startswith("set protocol.observations=inline")


def test_a_template_that_drops_the_thought_of_the_first_turn_alone_is_refused_too(with_template: Any) -> None:
    late = "text(m).split('</think>')[-1].lstrip('\n') if loop.index == 2 and messages | length > 3 else text(m)"
    with pytest.raises(UserFault, match="drops earlier thinking: after turn 2, token"):
        turns(with_template(template(late)))


def test_a_template_that_rewrites_a_turn_is_refused(with_template: Any) -> None:
    with pytest.raises(UserFault, match="changes earlier turns: after turn 1, token"):
        turns(with_template(template("text(m) | replace('\n\n', '\n')")))


@pytest.mark.parametrize(
    ("chat_template", "says"),
    [
        (
            template("text(m)").replace("messages %}<", "messages if m['role'] != 'system' %}<"),
            "drops the system prompt",
        ),
        (template("text(m) if m['role'] != 'user' else '<|image_pad|>'"), "drops the question"),
        (template("text(m) | replace('<|image_pad|>', '')"), "renders 0 image placeholders for one picture"),
        (template("text(m)", ""), "opens no assistant's turn"),
        (template("text(m) if m['role'] != 'assistant' else ''"), "drops the assistant's turn"),
        (template("raise_exception('no system')"), "cannot render a prompt: TemplateError: no system"),
    ],
)
def test_a_template_that_loses_part_of_the_prompt_is_refused(with_template: Any, chat_template: str, says: str) -> None:
    with pytest.raises(UserFault, match=says):
        prompt_text(with_template(chat_template), "You delegate.")


def test_a_tokenizer_that_changes_text_is_refused(tiny_tokenizer: Any) -> None:
    check_tokenizer(tiny_tokenizer)
    lower = copy.deepcopy(tiny_tokenizer)
    lower.backend_tokenizer.normalizer = normalizers.Lowercase()
    with pytest.raises(UserFault, match="the tokenizer changes text: '<search> Reader@@Chart_Skill: read the bars"):
        check_tokenizer(lower)
