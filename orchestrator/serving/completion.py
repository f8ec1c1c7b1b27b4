"""What the chat server sends back: completions and errors in OpenAI's form."""

from __future__ import annotations

import time
from typing import Any

from orchestrator.serving.reply import as_tool_calls
from orchestrator.serving.step import Step
from orchestrator.trajectory import Trajectory


def completion(step: Step, made: Trajectory, model: str) -> dict[str, Any]:
    """A `chat.completion` with one choice. `usage` counts policy and experts together. The field `maestro` is ours:
    stop, valid, source, form, seconds, and one entry for each delegation."""
    reply = step.reply
    key = made.row_id.removeprefix("step-")
    message: dict[str, Any] = {"role": "assistant", "content": reply.content or None}
    if reply.calls:
        message["tool_calls"] = as_tool_calls(reply.calls, key)
    prompt, written = (
        int(sum(made.usage[who][kind] for who in ("policy", "experts")))
        for kind in ("prompt_tokens", "completion_tokens")
    )
    return {
        "id": f"chatcmpl-{key}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if reply.calls else "stop",
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
        "maestro": {
            "stop": made.stop,
            "valid": made.valid,
            "source": step.source,
            "form": reply.form,
            "seconds": round(made.timings["total_s"], 3),
            "delegations": [_delegation(turn["observation"]) for turn in made.turns if _asked(turn)],
        },
    }


def error(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """An error body; clients of OpenAI show its message."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _asked(turn: dict[str, Any]) -> bool:
    return bool(turn["observation"] and turn["observation"]["expert"])


def _delegation(seen: dict[str, Any]) -> dict[str, Any]:
    return {name: seen[name] for name in ("expert", "skill", "subskill", "outcome", "latency_s")}
