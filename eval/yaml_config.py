"""A YAML file and ``key=value`` overrides, read strictly into a pydantic model.

The one idea: the person who wrote the file gets every fault at once, each with file and line (or the
override it came from) and the nearest known key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from registry import yamltree
from registry.errors import Fault, UserFault
from registry.strict_config import KeyFault, Location, Strict, as_data, key_faults, lay_over, line_of

__all__ = ["Strict", "load_config"]
Model = TypeVar("Model", bound=Strict)


def load_config(kind: type[Model], path: Path, overrides: Sequence[str] = ()) -> Model:
    """Read ``path``, lay the overrides over it and validate.

    Args:
        overrides: ``dotted.key=value``; the value is JSON where it reads as JSON, otherwise text.

    Raises:
        UserFault: names every fault with its file and line.
    """
    faults: list[Fault] = []
    tree = yamltree.read_tree(path, faults)
    if faults or tree is None:
        raise _refusal(path, faults)
    data = as_data(tree)
    if not isinstance(data, dict):
        raise _refusal(path, [Fault("expected 'key: value' lines", str(path), 1)])
    sources: dict[Location, str] = {}
    for override in overrides:
        _override(data, override, sources)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        found = [_fault(path, tree, fault, sources) for fault in key_faults(kind, error)]
        raise _refusal(path, found) from error


def _override(data: dict[str, Any], override: str, sources: dict[Location, str]) -> None:
    key, mark, text = override.partition("=")
    parts = key.strip().split(".")
    if not mark or not all(parts):
        raise UserFault(f"not an override: {override!r}", fix="write dotted.key=value, for example rows.test=60")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text.strip()
    taken = lay_over(data, parts, value)
    if taken is not None:
        raise UserFault(f"{taken!r} holds a value, not keys", where=override, fix="override the whole value instead")
    sources[tuple(parts)] = override


def _fault(path: Path, tree: yamltree.Node, fault: KeyFault, sources: Mapping[Location, str]) -> Fault:
    location, name = fault.location, fault.name or "the file"
    source = next(
        (sources[key] for key in sources if location[: len(key)] == key or key[: len(location)] == location),
        None,
    )
    file, line = (f"override {source}", None) if source else (str(path), line_of(tree, location))
    if fault.kind == "extra_forbidden":
        return Fault(f"unknown key {name!r}", file, line, fault.near)
    if fault.kind == "missing":
        return Fault(f"{name!r} is missing", file, line)
    given = "" if isinstance(fault.given, dict | list | BaseModel) else f" (given {fault.given!r})"
    return Fault(f"{name}: {fault.message}{given}", file, line)


def _refusal(path: Path, faults: Sequence[Fault]) -> UserFault:
    listing = "\n".join(f"  {fault}" for fault in faults)
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return UserFault(f"{count} in the configuration:\n{listing}", where=str(path))
