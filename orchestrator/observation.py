"""What the policy is shown after an action.

The one idea: an observation keeps two views apart. `text` is what came back, for the trace, as it was;
`shown` is the information block in which the policy reads it: neutralised, cut in tokens, encoded once into
`token_ids`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from experts.outcome import Delegation, Outcome, Usage
from orchestrator.action import Malformed
from orchestrator.neutralise import neutralise
from orchestrator.protocol import render_information
from orchestrator.tokens import MARKER, Side, Tokenizer, cap_bytes, count_tokens, truncate
from registry.errors import UserFault

MAX_TRACE_BYTES = 65536  # how much of a foreign text the trace keeps


@dataclass(frozen=True)
class Observation:
    """One answer of the world to one action.

    text: the original, at most MAX_TRACE_BYTES of it. shown: the rendered block (empty where no room was
    left).
    token_ids: `shown` in the policy's tokens; None where no tokenizer is at hand. n_tokens: their number,
    estimated without a tokenizer. truncated: `shown` holds less than `text`.
    """

    text: str
    token_ids: tuple[int, ...] | None
    outcome: Outcome
    expert: str = ""
    skill: str = ""
    subskill: str | None = None
    reason: str | None = None
    latency_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cached: bool = False
    attempts: int = 0
    error: str | None = None
    note: str | None = None
    shown: str = ""
    n_tokens: int = 0
    truncated: bool = False

    def to_json(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        ids = self.token_ids
        return data | {
            "token_ids": None if ids is None else list(ids),
            "outcome": self.outcome.value,
            "usage": {f.name: getattr(self.usage, f.name) for f in fields(self.usage)},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Observation:
        ids = data["token_ids"]
        return cls(
            **dict(data)
            | {
                "token_ids": None if ids is None else tuple(ids),
                "outcome": Outcome(data["outcome"]),
                "usage": Usage(**data["usage"]),
            }
        )


def from_delegation(
    delegation: Delegation,
    tokenizer: Tokenizer | None,
    *,
    max_tokens: int,
    side: Side = "head",
    frame: Callable[[str], str] = str,
) -> Observation:
    """The observation of a delegation, whatever its outcome; at most `max_tokens` tokens are shown.

    frame: puts the information block into a turn of its own (inside `max_tokens`); as it is, it stands inline.
    """
    shown, ids, n_tokens, truncated = _render(delegation.text, tokenizer, max_tokens, side, frame)
    return Observation(
        text=cap_bytes(delegation.text, MAX_TRACE_BYTES, side),
        token_ids=ids,
        outcome=delegation.outcome,
        expert=delegation.expert,
        skill=delegation.skill,
        subskill=delegation.subskill,
        reason=delegation.reason,
        latency_s=delegation.latency_s,
        usage=delegation.usage,
        cached=delegation.cached,
        attempts=delegation.attempts,
        error=delegation.error,
        note=delegation.note,
        shown=shown,
        n_tokens=n_tokens,
        truncated=truncated,
    )


def from_malformed(
    action: Malformed, tokenizer: Tokenizer | None, *, max_tokens: int, frame: Callable[[str], str] = str
) -> Observation:
    """The observation of a malformed turn: what was wrong, and the nearest names where a name was."""
    text = f"Invalid action: {action.detail}"
    shown, ids, n_tokens, truncated = _render(text, tokenizer, max_tokens, "head", frame)
    return Observation(
        text=text,
        token_ids=ids,
        outcome=Outcome.INVALID_ACTION,
        error=action.kind,
        shown=shown,
        n_tokens=n_tokens,
        truncated=truncated,
    )


def least_tokens(tokenizer: Tokenizer | None) -> int:
    """Tokens of the smallest block that can show anything: the two tags and the truncation marker."""
    return count_tokens(render_information(MARKER), tokenizer)


def check_room(max_observation_tokens: int, tokenizer: Tokenizer | None) -> None:
    """Raises UserFault where `max_observation_tokens` cannot even hold an empty block of this tokenizer."""
    least = least_tokens(tokenizer)
    if max_observation_tokens < least:
        raise UserFault(
            f"budget: max_observation_tokens is {max_observation_tokens}, the tags alone take {least} tokens",
            fix=f"raise max_observation_tokens above {least}",
        )


def _render(
    text: str, tokenizer: Tokenizer | None, max_tokens: int, side: Side, frame: Callable[[str], str]
) -> tuple[str, tuple[int, ...] | None, int, bool]:
    """shown, ids, number of tokens, truncated. Shown is empty where not even an empty block fits."""

    def wrap(part: str) -> str:
        return frame(render_information(part))

    harmless = neutralise(cap_bytes(text, max(4096, 64 * max_tokens), side))
    part = truncate(harmless, max_tokens, tokenizer, side=side, wrap=wrap)
    if part is None:
        return "", None if tokenizer is None else (), 0, True
    shown = wrap(part)
    ids = None if tokenizer is None else tuple(tokenizer.encode(shown))
    n_tokens = count_tokens(shown, tokenizer) if ids is None else len(ids)
    return shown, ids, n_tokens, part != harmless or len(harmless) < len(text)
