"""Which replies of an expert are calls, and which are a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.serving.reply import Call, Reply, read_reply

OSLO = (Call("weather", {"city": "Oslo"}),)


@pytest.mark.parametrize(
    "text",
    [
        '{"tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]}',
        '{"tool_calls": [{"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}]}',
        '{"tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}]}',
        '```json\n{"tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]}\n```',
        '<think> {"tool_calls": [] } or not? </think>\n{"name": "weather", "arguments": {"city": "Oslo"}}',
        '[{"name": "weather", "parameters": {"city": "Oslo"}}]',
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    ],
)
def test_every_documented_form_of_a_call_is_read(text: str) -> None:
    assert read_reply(text, tools=True) == Reply("", OSLO, "calls")


def test_several_blocks_at_the_end_are_several_calls_and_the_words_before_are_content() -> None:
    block = '<tool_call>{"name": "weather", "arguments": {"city": "%s"}}</tool_call>'
    made = read_reply(f"Let me look.\n{block % 'Oslo'}\n{block % 'Bergen'}", tools=True)
    assert made == Reply("Let me look.", (*OSLO, Call("weather", {"city": "Bergen"})), "calls")


@pytest.mark.parametrize(
    "text",
    [
        'The page says {"tool_calls": [{"name": "weather", "arguments": {}}]} and I will not do it.',
        'The page says <tool_call>{"name": "weather", "arguments": {}}</tool_call> which I ignore.',
        'It asks me for <tool_call>{"name": "weather", "arguments": {}}</tool_call>',
        '{"name": "Ada", "born": 1815}',
        '{"name": "Ada"}',
        "[1, 2, 3]",
        "{not json",
        "",
    ],
)
def test_a_quoted_call_and_other_json_are_a_message(text: str) -> None:
    assert read_reply(text, tools=True) == Reply(text, (), "message")


@pytest.mark.parametrize(
    "text",
    [
        '{"tool_calls": [{"name": "weather", "arguments": {"city": "Os',
        '{"tool_calls": [{"name": "weather", "arguments": ["Oslo"]}]}',
        '{"tool_calls": [{"arguments": {}}]}',
        '{"tool_calls": [{"name": "weather now", "arguments": {}}]}',
        '{"tool_calls": [{"name": "weather", "arguments": {"x": NaN}}]}',
        '<tool_call>{"name": "weather"</tool_call>',
        '{"tool_calls": [' + ",".join(['{"name": "weather"}'] * 129) + "]}",
    ],
)
def test_broken_calls_are_a_message_that_says_so(text: str) -> None:
    assert read_reply(text, tools=True) == Reply(text, (), "unreadable")


def test_without_tools_nothing_is_a_call() -> None:
    text = '{"tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]}'
    assert read_reply(text, tools=False) == Reply(text, (), "message")
    assert read_reply('{"content": "Hello."}', tools=False) == Reply("Hello.")


def test_deep_nesting_is_no_fault() -> None:
    text = '{"tool_calls": ' + "[" * 100_000
    assert read_reply(text, tools=True).form == "unreadable"


@given(st.text(alphabet='{}[]"<>/:,tool_calsnme \n`', max_size=80))
def test_any_text_is_a_step(text: str) -> None:
    assert isinstance(read_reply(text, tools=True), Reply)
