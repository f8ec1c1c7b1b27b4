"""Where the servers are now: a file that a launcher writes and a pool reads, so that ports live nowhere else.

    {"version": 1, "written": 1767225600.0,
     "experts": {"Chart-R1": {"model": "DocTron/Chart-R1",
                              "replicas": [{"url": "http://127.0.0.1:8101/v1", "weight": 1.0}]}},
     "tools": {}}

`written` is in Unix seconds. What the file names takes the place of the registry's model and replicas; what it does
not name keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from registry.errors import UnknownName, UserFault
from registry.registry import Registry
from registry.schema import Expert, OpenAIBackend, Part, Replica, Text, Tool

VERSION = 1
_MAX_BYTES = 4 * 1024 * 1024

Served = TypeVar("Served", Expert, Tool)


class Endpoint(Part):
    """The model that servers serve, by the name under which they know it, and their addresses."""

    model: Text
    replicas: tuple[Replica, ...] = Field(min_length=1)


class Endpoints(Part):
    """The file's content."""

    version: Literal[1]
    written: float = Field(ge=0)
    experts: dict[str, Endpoint] = Field(default_factory=dict)
    tools: dict[str, Endpoint] = Field(default_factory=dict)


def read_endpoints(path: Path) -> Endpoints:
    """The file's content. Raises UserFault where it cannot be read or is not of this form."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _fault(path, f"cannot be read: {error.strerror or error}") from None
    if len(text) > _MAX_BYTES:
        raise _fault(path, f"is larger than {_MAX_BYTES} bytes")
    try:
        return Endpoints.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise _fault(path, f"is not of the right form: {place + ': ' if place else ''}{first['msg']}") from None


def with_endpoints(registry: Registry, path: Path) -> Registry:
    """The registry with the models and replicas of the file at `path`.

    Raises UserFault where the file cannot be read, is not of the right form, or names what the registry does not
    hold or does not serve over HTTP.
    """
    found = read_endpoints(path)
    return Registry(
        _moved("expert", registry, registry.experts, found.experts, path),
        registry.skills,
        _moved("tool", registry, registry.tools, found.tools, path),
        registry.places,
    )


def _moved(
    kind: str, registry: Registry, parts: tuple[Served, ...], endpoints: Mapping[str, Endpoint], path: Path
) -> tuple[Served, ...]:
    """`parts`, those that `endpoints` names at their new places."""
    new: dict[str, OpenAIBackend] = {}
    for name, endpoint in endpoints.items():
        try:
            part = registry.expert(name) if kind == "expert" else registry.tool(name)
        except UnknownName as unknown:
            fix = unknown.fix or "give the registry for which the servers were started, or start them again"
            raise UserFault(
                f"the endpoints file names the {kind} {name!r}, which the registry does not hold",
                where=str(path),
                fix=fix,
            ) from None
        if not isinstance(part.backend, OpenAIBackend):
            raise UserFault(
                f"the endpoints file names the {kind} {name!r}, which is a program and not a server",
                where=str(path),
                fix="leave it out, or give it a backend of type 'openai' in the registry",
            )
        if part.name in new:
            raise UserFault(f"the endpoints file names the {kind} {part.name!r} twice", where=str(path))
        new[part.name] = part.backend.model_copy(update={"model": endpoint.model, "replicas": endpoint.replicas})
    return tuple(part.model_copy(update={"backend": new[part.name]}) if part.name in new else part for part in parts)


def _fault(path: Path, what: str) -> UserFault:
    return UserFault(
        f"the endpoints file {what}",
        where=str(path),
        fix="start the servers with 'maestro experts serve', which writes it",
    )
