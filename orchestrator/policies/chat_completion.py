"""A policy turn out of a chat completion as servers really send it.

The one idea: what only some servers send (token ids, log-probabilities, the stop string they stopped at,
thoughts in a field of their own) is taken where it is there and never needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.policy import InfrastructureError, PolicyTurn


def read_completion(body: bytes, latency_s: float, where: str) -> PolicyTurn:
    """Raises InfrastructureError where the body is no chat completion."""
    try:
        document = json.loads(body)
        choice = document["choices"][0]
        message = choice["message"]
        text = _words(message.get("content"))
        thought = _words(message.get("reasoning_content")) or _words(message.get("reasoning"))
        ids = _ids(choice) if not thought else None  # thoughts that were moved out are no longer where the ids are
        return PolicyTurn(
            text=f"<think>{thought}</think>{text}" if thought else text,
            token_ids=ids,
            logprobs=_logprobs(choice, ids),
            finish_reason=_finish_reason(choice),
            latency_s=latency_s,
            prompt_tokens=_count(document, "prompt_tokens"),
            completion_tokens=_count(document, "completion_tokens"),
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        start = body[:120].decode("utf-8", "replace")
        raise InfrastructureError(
            f"{where}: the reply is no chat completion ({type(error).__name__}): {start!r}"
        ) from None


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _ids(choice: Mapping[str, Any]) -> tuple[int, ...] | None:
    ids = choice.get("token_ids")
    return tuple(ids) if isinstance(ids, list) and ids and all(isinstance(i, int) for i in ids) else None


def _logprobs(choice: Mapping[str, Any], ids: tuple[int, ...] | None) -> tuple[float, ...] | None:
    """One number for each id, else nothing."""
    entries = (choice.get("logprobs") or {}).get("content") or []
    found = tuple(float(entry["logprob"]) for entry in entries)
    return found if ids is not None and len(found) == len(ids) else None


def _finish_reason(choice: Mapping[str, Any]) -> str:
    """The stop string where the server names it, "eos" where it says that there was none, else its own
    word."""
    reason = _words(choice.get("finish_reason")) or "stop"
    if reason == "stop" and "stop_reason" in choice:
        return _words(choice["stop_reason"]) or "eos"
    return reason


def _count(document: Mapping[str, Any], name: str) -> int:
    number = (document.get("usage") or {}).get(name)
    return number if isinstance(number, int) and number > 0 else 0
