"""Makes a skill with faulty fields readable, so that the rest of it is checked in the same run.

The faults themselves are reported already. Here each faulty value gives way to a harmless stand-in, only
for the checks between parts; the result never leaves the loader.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from pydantic import ValidationError

from registry.findings import Path, details, without_tags
from registry.schema import Skill

_ROUNDS = 8
_numbers = count()
_STAND_INS: dict[str, Any] = {
    "description": "unread",
    "ask": "unread",
    "answer": "unread",
    "when": "true",
    "rounds": 1,
    "keywords": [],
    "aliases": [],
    "steps": [{"ask": "unread"}],
    "procedure": {"steps": [{"ask": "unread"}]},
}


def salvage(data: dict[str, Any]) -> Skill | None:
    """A skill from the readable parts of `data` (which is changed), or None when too little is left."""
    for _ in range(_ROUNDS):
        try:
            return Skill.model_validate(data)
        except ValidationError as error:
            for detail in details(error):
                _mend(data, without_tags(detail["loc"]))
    return None


def _mend(data: dict[str, Any], path: Path) -> None:
    owner: Any = data
    for step in path[:-1]:
        try:
            owner = owner[step]
        except (KeyError, IndexError, TypeError):
            return  # an error further up has replaced this already
    last: Any = path[-1]
    if isinstance(owner, list) and isinstance(last, int) and last < len(owner):
        owner[last] = _item(owner[last], path)
    elif isinstance(owner, dict):
        if last == "name":
            owner[last] = _fresh_name()
        elif last in _STAND_INS:
            owner[last] = _STAND_INS[last]
        else:
            owner.pop(last, None)


def _item(item: Any, path: Path) -> Any:
    kind = path[-2]
    if kind == "subskills":
        return {"name": _fresh_name(), "description": "unread", "procedure": _STAND_INS["procedure"]}
    if kind == "images":
        return "image"
    if kind != "steps":
        return _fresh_name()
    # What the step saves stays known, so that later steps are not blamed.
    given = item if isinstance(item, dict) else {}
    step = {key: given[key] for key in ("save",) if isinstance(given.get(key), str)}
    key = "tool" if isinstance(given.get("tool"), str) else "ask"
    return {**step, key: given[key] if isinstance(given.get(key), str) else "unread"}


def _fresh_name() -> str:
    return f"unread part {next(_numbers)}"
