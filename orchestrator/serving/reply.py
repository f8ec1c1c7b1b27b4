"""An expert's reply, read as the assistant's next step: tool calls, or a message.

The one idea: a reply is calls only where it is nothing else, so that a call which is merely quoted (out of a tool's
result, say) never acts. `read_reply` is total: whatever is not exactly one of these forms is a message.

    {"tool_calls": [{"name": "f", "arguments": {"x": 1}}], "content": "..."}      content may be left out
    {"name": "f", "arguments": {"x": 1}}      or a list of such objects; `parameters` may stand for `arguments`
    words <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call> ...         blocks at the very end, each on a
                                                                                  line of its own
    {"content": "a message"}

Around all of it a closed `<think>` block and one code fence are taken off. Arguments may be an object or its JSON
text. Names are not compared with the tools that were offered, and arguments not with their schema: whoever asked
judges both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Form = Literal["calls", "message", "unreadable"]
MOST_CALLS = 128

_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_FENCE = re.compile(r"\A```[a-zA-Z_]*[ \t]*\n(.*)\n?```\Z", re.DOTALL)
_NAME = re.compile(r"[\w.:/-]{1,128}")
_CALL_KEYS = {"name", "arguments", "parameters", "id", "type"}
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


@dataclass(frozen=True)
class Call:
    """One call; `arguments` is an object."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """A step. form: `unreadable` where the text set out to be calls and is none; it is then a message."""

    content: str
    calls: tuple[Call, ...] = ()
    form: Form = "message"


def read_reply(text: str, *, tools: bool) -> Reply:
    """The step that a reply makes. tools: whether any call may come back; without, all is a message."""
    text = _THOUGHT.sub("", text).strip()
    bare = found[1].strip() if (found := _FENCE.match(text)) else text
    try:
        return _whole(bare, tools) or (_blocks(bare) if tools else None) or Reply(text)
    except (ValueError, RecursionError):
        return Reply(text, form="unreadable")


def _whole(text: str, tools: bool) -> Reply | None:
    """The reply that is one JSON value; None where it is no step. Raises ValueError for broken calls."""
    if text[:1] not in ("{", "["):
        return None
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        if tools and re.match(r"[{\[\s]*\"(tool_calls|name)\"\s*:", text):
            raise ValueError("broken JSON") from None
        return None
    if isinstance(data, dict) and set(data) <= {"content", "tool_calls"} and data:
        content, calls = data.get("content"), data.get("tool_calls")
        if content is not None and not isinstance(content, str):
            return None
        if not calls:
            return Reply(content) if content else None
        return _calls(calls, content or "") if tools else None
    if not tools:
        return None
    if isinstance(data, dict) and _is_call(data):
        return _calls([data], "")
    if isinstance(data, list) and data and all(isinstance(item, dict) and _is_call(item) for item in data):
        return _calls(data, "")
    return None


def _blocks(text: str) -> Reply | None:
    """The reply that ends with `<tool_call>` blocks, each beginning a line. Raises ValueError for broken calls."""
    if not text.endswith(_CLOSE):
        return None
    rest, found = text, []
    while rest.endswith(_CLOSE) and len(found) <= MOST_CALLS:
        start = rest.rfind(_OPEN)
        before = rest[: max(start, 0)]
        if start < 0 or (before.strip(" \t") and not before.rstrip(" \t").endswith(("\n", _CLOSE))):
            return None
        found.insert(0, json.loads(rest[start + len(_OPEN) : -len(_CLOSE)], parse_constant=_no_constant))
        rest = before.rstrip()
    return _calls(found, rest)


def _is_call(data: Mapping[str, Any]) -> bool:
    keys = set(data)
    return "name" in keys and bool(keys & {"arguments", "parameters"}) and keys <= _CALL_KEYS


def _calls(items: Any, content: str) -> Reply:
    if not isinstance(items, list) or len(items) > MOST_CALLS:
        raise ValueError("not a list of calls")
    return Reply(content, tuple(_call(item) for item in items), "calls")


def _call(item: Any) -> Call:
    if isinstance(item, dict) and isinstance(item.get("function"), dict):  # OpenAI's own form
        item = item["function"]
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("a call without a name")
    arguments = item.get("arguments", item.get("parameters"))
    if isinstance(arguments, str) and arguments.strip():
        arguments = json.loads(arguments, parse_constant=_no_constant)
    if arguments in (None, ""):
        arguments = {}
    if not isinstance(arguments, dict):
        raise ValueError("arguments that are no object")
    return Call(name, arguments)


def as_tool_calls(calls: Sequence[Call], key: str) -> list[dict[str, Any]]:
    """Calls in the form of a chat completion; `key` makes their ids different from those of other steps."""
    return [
        {
            "id": f"call_{key}_{number}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for number, call in enumerate(calls)
    ]


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
