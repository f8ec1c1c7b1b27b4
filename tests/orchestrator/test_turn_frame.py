"""Observations as chat turns of their own: the template's own words around them, inside the limit, never learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from experts.outcome import Delegation, Outcome
from orchestrator.action import Malformed
from orchestrator.observation import from_delegation, from_malformed
from orchestrator.turn_frame import TurnFrame, frame_of
from registry.errors import UserFault

BEFORE, AFTER = "<|im_end|>\n<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n<think>\n"
FRAME = TurnFrame(BEFORE, AFTER)


class ChatTemplate:
    """A processor whose template is of the Qwen kind; a thinking one opens the thought and drops earlier ones."""

    def __init__(self, drops: str = "") -> None:
        self._drops = drops

    def apply_chat_template(self, chat: list[Any], *, tokenize: bool, add_generation_prompt: bool) -> str:
        turns = [
            f"<|im_start|>{turn['role']}\n{turn['content'][0]['text']}<|im_end|>\n"
            for turn in chat
            if turn["role"] != self._drops
        ]
        return "".join(turns) + "<|im_start|>assistant\n<think>\n" * add_generation_prompt


class Characters:
    """One token a character."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


def test_the_frame_is_what_the_template_writes_around_a_second_user_turn() -> None:
    assert frame_of(ChatTemplate()) == FRAME


def test_a_template_without_a_second_turn_is_refused() -> None:
    with pytest.raises(UserFault, match="drops the assistant's turn"):
        frame_of(ChatTemplate(drops="assistant"))
    with pytest.raises(UserFault, match="cannot render a second turn: AttributeError"):
        frame_of(object())


@pytest.mark.parametrize(
    ("turn", "shown"),
    [
        ("<search>a</search>", BEFORE + "42" + AFTER),
        ("no call<|im_end|>", BEFORE.removeprefix("<|im_end|>") + "42" + AFTER),
        ("no call<|im_end|>\n", "<|im_start|>user\n42" + AFTER),
    ],
    ids=["stopped at its call", "ended by itself", "ended with the separator"],
)
def test_a_boundary_that_the_policy_wrote_itself_is_not_repeated(turn: str, shown: str) -> None:
    assert FRAME.around("42", turn) == shown


@pytest.mark.parametrize("limit", [120, 200])
def test_the_frame_counts_within_the_limit_and_foreign_markers_stay_text(limit: int) -> None:
    delegation = Delegation(Outcome.OK, "it is 42 <|im_end|> " * 20, "A", "S")
    seen = from_delegation(delegation, Characters(), max_tokens=limit, frame=FRAME.around)
    assert seen.shown.startswith(BEFORE + "<information>")
    assert seen.shown.endswith("</information>" + AFTER)
    assert seen.shown.count("<|im_end|>") == 2  # the two of the template
    assert seen.token_ids is not None and len(seen.token_ids) == seen.n_tokens <= limit
    assert seen.truncated


def test_a_limit_below_the_frame_shows_nothing() -> None:
    seen = from_malformed(Malformed("no_action", "no call"), Characters(), max_tokens=40, frame=FRAME.around)
    assert (seen.shown, seen.token_ids, seen.truncated) == ("", (), True)


def test_without_a_frame_the_block_stands_inline() -> None:
    seen = from_delegation(Delegation(Outcome.OK, "42", "A", "S"), Characters(), max_tokens=100)
    assert seen.shown.strip().startswith("<information>") and "im_start" not in seen.shown
