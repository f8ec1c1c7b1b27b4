"""The registry: everything that can be called, immutable once it exists.

The one idea: look-ups go through one normalisation and either hit exactly or raise `UnknownName` with the
nearest names. A registry without its promises can't be made, neither from files nor from parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

from registry import loader
from registry.checks import check
from registry.errors import Fault, RegistryFault, UnknownName
from registry.names import nearest, normalise
from registry.schema import Expert, Skill, Tool


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


NamedPart = TypeVar("NamedPart", bound=_Named)


@dataclass(frozen=True)
class Registry:
    """Experts, Level-1 skills (with their subskills) and tools, in the order of the files.

    Raises `RegistryFault` when names clash or a procedure refers to what does not exist. `places` says where
    a part was defined, (kind, name) -> file and line; it is no part of the registry's identity.
    """

    experts: tuple[Expert, ...] = ()
    skills: tuple[Skill, ...] = ()
    tools: tuple[Tool, ...] = ()
    places: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        findings = check(self.experts, self.skills, self.tools)
        faults = [
            Fault(f"{found.message}", f"{found.kind} {found.name!r}", hint=found.hint) for found in findings
        ]
        if faults:
            raise RegistryFault(faults)

    @classmethod
    def load(cls, *paths: str | Path) -> Registry:
        """Read files and folders in this order; without any, the embedded registry.

        Raises `RegistryFault` with every fault of every file.
        """
        loaded = loader.load(paths or (default_registry_path(),))
        registry = object.__new__(cls)
        # The loader has checked all of it, with lines; making it the usual way would check it a second time.
        for name in ("experts", "skills", "tools", "places"):
            object.__setattr__(registry, name, getattr(loaded, name))
        return registry

    def expert(self, name: str) -> Expert:
        """The expert of that name or alias. Raises `UnknownName`."""
        return _find("expert", name, self._experts, self.experts)

    def skill(self, name: str) -> Skill:
        """The Level-1 skill of that name or alias. Raises `UnknownName`."""
        return _find("skill", name, self._skills, self.skills)

    def tool(self, name: str) -> Tool:
        """The tool of that name or alias. Raises `UnknownName`."""
        return _find("tool", name, self._tools, self.tools)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content (not of the files): equal registries have equal digests."""
        content = [
            [part.model_dump(mode="json") for part in parts]
            for parts in (self.experts, self.skills, self.tools)
        ]
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def _experts(self) -> dict[str, Expert]:
        return _index(self.experts)

    @cached_property
    def _skills(self) -> dict[str, Skill]:
        return _index(self.skills)

    @cached_property
    def _tools(self) -> dict[str, Tool]:
        return _index(self.tools)


def default_registry_path() -> Path:
    """The embedded registry's file, found beside this package from any working directory."""
    return Path(__file__).resolve().parent.parent / "configs" / "registry" / "embedded.yaml"


def _index(parts: Sequence[NamedPart]) -> dict[str, NamedPart]:
    return {normalise(label): part for part in parts for label in (part.name, *part.aliases)}


def _find(kind: str, name: str, index: Mapping[str, NamedPart], parts: Sequence[NamedPart]) -> NamedPart:
    found = index.get(normalise(name))
    if found is None:
        raise UnknownName(kind, name, nearest(name, (part.name for part in parts)))
    return found
