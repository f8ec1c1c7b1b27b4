"""The names in a run's registry, as its folder keeps them: what an arm without a pool of its own may call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from registry.registry import Registry

KEY = "parts"


@dataclass(frozen=True)
class Parts:
    """Canonical names of the experts and of the Level-1 skills."""

    experts: tuple[str, ...]
    skills: tuple[str, ...]

    def to_json(self) -> dict[str, list[str]]:
        return {"experts": list(self.experts), "skills": list(self.skills)}


def parts_of(registry: Registry) -> Parts:
    """The names in a registry."""
    return Parts(tuple(one.name for one in registry.experts), tuple(one.name for one in registry.skills))


def parts_in(record: Mapping[str, Any]) -> Parts | None:
    """The names in an `eval.json`; ``None`` where it lacks them, as those of earlier versions do."""
    found = record.get(KEY)
    if not isinstance(found, Mapping):
        return None
    experts, skills = found.get("experts"), found.get("skills")
    if not isinstance(experts, list) or not isinstance(skills, list):
        return None
    return Parts(tuple(map(str, experts)), tuple(map(str, skills)))


def parts_of_pairs(pairs: Iterable[str]) -> Parts | None:
    """The names in a matrix, which has every pair; ``None`` for none."""
    found = [str(pair).partition("@@") for pair in pairs]
    if not found:
        return None
    return Parts(tuple(dict.fromkeys(one[0] for one in found)), tuple(dict.fromkeys(one[2] for one in found)))
