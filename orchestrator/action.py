"""What one policy turn asks for.

The one idea: reading a turn always gives one of three values, `Search`, `Answer` or `Malformed`; there is no
fourth way and no exception. The JSON form here is the one that trajectories and `maestro parse --json` use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Search:
    """Delegate `query` to `expert` under the Level-1 `skill`; canonical names where a registry was at
    hand."""

    expert: str
    skill: str
    query: str


@dataclass(frozen=True)
class Answer:
    """End the episode with this text (stripped; may be empty, may hold several lines)."""

    text: str


@dataclass(frozen=True)
class Malformed:
    """A turn that is neither. `kind` is a short fixed word, `detail` a sentence that the policy may be
    shown."""

    kind: str
    detail: str


Action = Search | Answer | Malformed

_TYPES: dict[str, type[Search] | type[Answer] | type[Malformed]] = {
    "search": Search,
    "answer": Answer,
    "malformed": Malformed,
}


def action_to_json(action: Action) -> dict[str, str]:
    """`{"type": "search" | "answer" | "malformed", ...fields}`."""
    return {"type": type(action).__name__.lower(), **asdict(action)}


def action_from_json(data: Mapping[str, Any]) -> Action:
    """Inverse of `action_to_json`. Raises ValueError on an unknown type or missing fields."""
    fields = dict(data)
    kind = fields.pop("type", None)
    if kind not in _TYPES:
        raise ValueError(f"unknown action type {kind!r}; one of {', '.join(_TYPES)}")
    try:
        return _TYPES[kind](**fields)
    except TypeError as error:
        raise ValueError(f"action {kind!r}: {error}") from None
