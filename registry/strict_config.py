"""What every strict configuration file is read with: a model that refuses unknown keys, `key=value` overrides, and
faults with their place and the nearest known key.

The one idea: a reader of configurations (of training, of evaluations) has words and defaults of its own; how keys are
laid over each other, found in the file and compared with the model's is said here, once.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from registry import yamltree
from registry.names import nearest

Location = tuple[str | int, ...]
_NOTHING = {"null", "~", ""}


class Strict(BaseModel):
    """Base of configuration models: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class KeyFault:
    """What is wrong at one place; `kind` is pydantic's name for it, `near` the nearest key to an unknown one."""

    location: Location
    kind: str
    message: str
    given: Any
    near: str | None = None

    @property
    def name(self) -> str:
        """The dotted key; empty for the whole file."""
        return ".".join(map(str, self.location))


def key_faults(kind: type[BaseModel], error: ValidationError) -> Iterator[KeyFault]:
    """Every fault that validation against `kind` found."""
    for detail in error.errors(include_url=False):
        location: Location = detail["loc"]
        near: tuple[str, ...] = ()
        if detail["type"] == "extra_forbidden":
            near = nearest(str(location[-1]), known_keys(kind, location[:-1]), 1)
        message = str(detail["msg"]).removeprefix("Value error, ")
        yield KeyFault(location, detail["type"], message, detail["input"], near[0] if near else None)


def known_keys(kind: type[BaseModel], location: Location) -> list[str]:
    """The keys of the model at `location` within `kind`; empty where there is no model."""
    current: Any = kind
    for part in location:
        if not (isinstance(current, type) and issubclass(current, BaseModel)):
            current = _inner(current)
        else:
            field = current.model_fields.get(str(part))
            current = _model_in(field.annotation) if field else None
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []


def lay_over(data: dict[str, Any], keys: Sequence[str], value: Any) -> str | None:
    """Set `value` under `keys`, making mappings where nothing is. Returns the key that holds a value instead of keys,
    None where all went well."""
    place = data
    for key in keys[:-1]:
        if place.get(key) is None:
            place[key] = {}
        inner = place[key]
        if not isinstance(inner, dict):
            return key
        place = inner
    place[keys[-1]] = value
    return None


def as_data(node: yamltree.Node) -> Any:
    """A tree as dicts, lists and text; what YAML calls nothing is None unless it is quoted."""
    if isinstance(node, yamltree.Mapping):
        return {key: as_data(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, yamltree.Sequence):
        return [as_data(item) for item in node.items]
    return None if node.plain and node.text in _NOTHING else node.text


def line_of(tree: yamltree.Node, location: Location) -> int:
    """Line of the deepest part of `location` that the file holds."""
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


def _model_in(annotation: Any) -> Any:
    """The model class of an annotation, `X | None` included; a mapping or list stays as it is for the next step."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next((item for item in typing.get_args(annotation) if item is not type(None)), None)
    return annotation


def _inner(annotation: Any) -> Any:
    arguments = [item for item in typing.get_args(annotation) if item is not Ellipsis]
    return _model_in(arguments[-1]) if arguments else None
