"""Reading a chat completion as servers really send it.

Content may be null, a list of parts, or hold the reasoning between think tags; the reasoning may come in a
field of its own, under either of two names. Nothing of this is an error: what counts as the answer is told
apart from what was thought, and an answer without text is an empty text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from experts.clients.failure import Failed
from experts.outcome import ExpertReply, Outcome, Usage

_OPEN, _CLOSE = "<think>", "</think>"
_MOST_TOKENS = 10**12  # what is more is no count of tokens


def read_reply(body: bytes | bytearray) -> ExpertReply:
    """The reply in a successful response's body. Raises Failed when it is no completion: worth another try,
    as after a lost connection, and a server that sends nothing else is as good as dead."""
    try:
        document = json.loads(body)
        choice = document["choices"][0]
        message = choice["message"]
        content, thought = message.get("content"), _reasoning(message)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        start = body[:120].decode("utf-8", "replace")
        what = f"the server's reply is not a chat completion ({type(error).__name__}): {start!r}"
        raise Failed(Outcome.ERROR, what, again=True, alive=False) from None
    text, thought_aloud = split_thought(_words(content))
    return ExpertReply(
        text=text.strip(),
        reasoning=(thought or thought_aloud).strip(),
        finish_reason=_words(choice.get("finish_reason")) or "stop",
        usage=_usage(document.get("usage")),
    )


def split_thought(content: str) -> tuple[str, str]:
    """(answer, reasoning) of a content with `<think>` tags. An unclosed one is all reasoning; a closing tag
    alone means that the template had opened it."""
    before, closed, after = content.rpartition(_CLOSE)
    if closed:
        lead, _, thought = before.rpartition(_OPEN) if _OPEN in before else ("", "", before)
        return lead + after, thought
    lead, opened, thought = content.partition(_OPEN)
    return (lead, thought) if opened else (content, "")


def _reasoning(message: Mapping[str, Any]) -> str:
    return _words(message.get("reasoning_content")) or _words(message.get("reasoning"))


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [part.get("text") if isinstance(part, Mapping) else part for part in value]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _usage(value: Any) -> Usage:
    def count(name: str) -> int:
        number = value.get(name) if isinstance(value, Mapping) else None
        return number if type(number) is int and 0 < number < _MOST_TOKENS else 0

    return Usage(count("prompt_tokens"), count("completion_tokens"), calls=1)
