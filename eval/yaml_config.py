"""A YAML file and ``key=value`` overrides, read strictly into a pydantic model.

The one idea: the person who wrote the file gets every fault at once, each with file and line (or the
override it came from) and the nearest known key.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from registry import yamltree
from registry.errors import Fault, UserFault
from registry.names import nearest

_NOTHING = {"null", "~", ""}
Location = tuple[str | int, ...]


class Strict(BaseModel):
    """Base of configuration models: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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
    data = _plain(tree)
    if not isinstance(data, dict):
        raise _refusal(path, [Fault("expected 'key: value' lines", str(path), 1)])
    sources: dict[Location, str] = {}
    for override in overrides:
        _lay_over(data, override, sources)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        found = [_fault(kind, path, tree, detail, sources) for detail in error.errors(include_url=False)]
        raise _refusal(path, found) from error


def _lay_over(data: dict[str, Any], override: str, sources: dict[Location, str]) -> None:
    key, mark, text = override.partition("=")
    parts = key.strip().split(".")
    if not mark or not all(parts):
        raise UserFault(f"not an override: {override!r}", fix="write dotted.key=value, for example rows.test=60")
    place: dict[str, Any] = data
    for part in parts[:-1]:
        inner = place.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UserFault(f"{part!r} holds a value, not keys", where=override, fix="override the whole value instead")
        place = inner
    try:
        place[parts[-1]] = json.loads(text)
    except ValueError:
        place[parts[-1]] = text.strip()
    sources[tuple(parts)] = override


def _plain(node: yamltree.Node) -> Any:
    if isinstance(node, yamltree.Mapping):
        return {key: _plain(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, yamltree.Sequence):
        return [_plain(item) for item in node.items]
    return None if node.plain and node.text in _NOTHING else node.text


def _fault(
    kind: type[BaseModel],
    path: Path,
    tree: yamltree.Node,
    detail: Mapping[str, Any],
    sources: Mapping[Location, str],
) -> Fault:
    location: Location = detail["loc"]
    name = ".".join(map(str, location)) or "the file"
    source = next(
        (sources[key] for key in sources if location[: len(key)] == key or key[: len(location)] == location),
        None,
    )
    file, line = (f"override {source}", None) if source else (str(path), _line(tree, location))
    if detail["type"] == "extra_forbidden":
        near = nearest(str(location[-1]), _known_keys(kind, location[:-1]), 1)
        return Fault(f"unknown key {name!r}", file, line, near[0] if near else None)
    if detail["type"] == "missing":
        return Fault(f"{name!r} is missing", file, line)
    message = str(detail["msg"]).removeprefix("Value error, ")
    given = "" if isinstance(detail["input"], dict | list | BaseModel) else f" (given {detail['input']!r})"
    return Fault(f"{name}: {message}{given}", file, line)


def _line(tree: yamltree.Node, location: Location) -> int:
    """Line of the deepest part of ``location`` that the file holds."""
    line, node = 1, tree
    for part in location:
        if isinstance(node, yamltree.Mapping) and str(part) in node.entries:
            key, node = node.entries[str(part)]
            line = key.line
        elif isinstance(node, yamltree.Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            line = node.line
        else:
            break
    return line


def _known_keys(kind: type[BaseModel], location: Location) -> list[str]:
    current: Any = kind
    for part in location:
        if not (isinstance(current, type) and issubclass(current, BaseModel)):
            current = _inner(current)
        else:
            field = current.model_fields.get(str(part))
            current = _model_in(field.annotation) if field else None
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []


def _model_in(annotation: Any) -> Any:
    """The model class of an annotation, ``X | None`` included; a mapping or list stays as it is for the
    next step."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next((item for item in typing.get_args(annotation) if item is not type(None)), None)
    return annotation


def _inner(annotation: Any) -> Any:
    arguments = [item for item in typing.get_args(annotation) if item is not Ellipsis]
    return _model_in(arguments[-1]) if arguments else None


def _refusal(path: Path, faults: Sequence[Fault]) -> UserFault:
    listing = "\n".join(f"  {fault}" for fault in faults)
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return UserFault(f"{count} in the configuration:\n{listing}", where=str(path))
