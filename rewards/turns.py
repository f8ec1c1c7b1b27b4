"""The policy's turns out of a trajectory record, checked: what it wrote, and what that was read as.

The one idea: rewards look at nothing but these turns, so no text of an expert, a tool or the question can
reach them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ActionType = Literal["search", "answer", "malformed"]
_ACTION_TYPES = ("search", "answer", "malformed")


@dataclass(frozen=True)
class Turn:
    """One policy turn: `text` as written up to the end of its first action, and the action it was read as."""

    text: str
    action: ActionType
    expert: str
    skill: str
    query: str
    outcome: str
    """Outcome of the delegation ("ok", "timeout", ...), "" where the turn brought no observation."""
    dropped_text: str


def policy_turns(trajectory: Mapping[str, Any]) -> tuple[Turn, ...]:
    """The turns of a trajectory record, in order. Raises ValueError, naming turn and field, for a broken
    record.
    """
    turns = trajectory.get("turns")
    if not isinstance(turns, list | tuple):
        raise ValueError(f"{_name(trajectory)}: 'turns' is not a list")
    return tuple(_turn(turn, f"{_name(trajectory)}, turn {number}") for number, turn in enumerate(turns, 1))


def _name(trajectory: Mapping[str, Any]) -> str:
    return f"trajectory {trajectory.get('id', '(without id)')}"


def _turn(turn: Any, where: str) -> Turn:
    if not isinstance(turn, Mapping):
        raise ValueError(f"{where}: not an object")
    text, action, observation = turn.get("text"), turn.get("action"), turn.get("observation")
    if not isinstance(text, str):
        raise ValueError(f"{where}: 'text' is not a string")
    kind = action.get("type") if isinstance(action, Mapping) else None
    if not isinstance(action, Mapping) or kind not in _ACTION_TYPES:
        raise ValueError(f"{where}: 'action' has no type out of {', '.join(_ACTION_TYPES)}")
    outcome = observation.get("outcome") if isinstance(observation, Mapping) else None
    return Turn(
        text=text,
        action=kind,
        expert=_text(action.get("expert")),
        skill=_text(action.get("skill")),
        query=_text(action.get("query")),
        outcome=_text(outcome),
        dropped_text=_text(turn.get("dropped_text")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
