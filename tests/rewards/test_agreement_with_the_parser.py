"""Rewards read the same answer out of a turn as the protocol's parser does (the two rooms share no code)."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.action import Answer, Search
from orchestrator.protocol import action_end, parse_turn
from rewards.format import tag_fault
from rewards.read_answer import read_answer

PIECES = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<search>",
        "</search>",
        "<answer>",
        "</answer>",
        "<information>",
        "E@@S: how",
        "x",
        "\n",
        " ",
    ]
)


@settings(max_examples=2000, deadline=None)
@given(st.lists(PIECES, max_size=10).map("".join))
@example("<answer>a</answer> ... <answer>b</answer>")
@example("<think>is it <answer>7</answer>?</think><answer>8</answer>")
@example("thought</think><answer>\n42\n</answer>")
@example("<think>open <answer>42</answer>")
@example("<information><answer>42</answer>")
def test_the_answer_of_a_kept_turn_is_the_parsers(text: str) -> None:
    action = parse_turn(text)
    kept = text[: action_end(text)]
    if isinstance(action, Answer):
        assert read_answer([kept]) == action.text
    elif isinstance(action, Search):
        assert read_answer([kept]) is None


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="ab <>/", max_size=20), st.text(alphabet="ab ", max_size=10))
def test_a_plain_call_or_answer_with_a_thought_is_balanced(thought: str, body: str) -> None:
    assert tag_fault(f"<think>{thought}</think><search>E@@S: {body}</search>") is None
    assert tag_fault(f"<think>{thought}</think><answer>{body}</answer>") is None
