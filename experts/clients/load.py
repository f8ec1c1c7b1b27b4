"""From a registry's `target` to an object: `package.module:Class`, or the name of an entry point.

Other packages add experts and tools by declaring entry points in the groups `maestro.experts` and
`maestro.tools`; nothing has to be registered here.
"""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import Any, Literal

from registry.errors import UserFault
from registry.names import nearest
from registry.schema import PythonBackend

Group = Literal["maestro.experts", "maestro.tools"]
_METHODS: dict[Group, str] = {"maestro.experts": "answer", "maestro.tools": "run"}


def load_class(target: str, group: Group) -> Any:
    """What `target` names. Raises UserFault saying which part of it is wrong."""
    if ":" not in target:
        return _from_entry_point(target, group)
    module_name, _, attribute = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # importing runs foreign code
        raise UserFault(
            f"cannot import {module_name!r}: {type(error).__name__}: {error}",
            where=f"target {target!r}",
            fix="check the spelling, and that the package is installed in this environment",
        ) from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise UserFault(
            f"module {module_name!r} has no {attribute!r}",
            where=f"target {target!r}",
            fix=_did_you_mean(nearest(attribute, [name for name in vars(module) if name[:1] != "_"])),
        ) from None


def make_program(backend: PythonBackend, group: Group) -> Any:
    """The expert or tool that `backend` describes, made with its options. Raises UserFault."""
    made = load_class(backend.target, group)
    method = _METHODS[group]
    if not callable(made):
        raise UserFault(f"{backend.target!r} is not a class", where=f"target {backend.target!r}")
    try:
        program = made(**backend.options)
    except Exception as error:  # the constructor is foreign code
        options = ", ".join(backend.options) or "no options"
        raise UserFault(
            f"cannot make {backend.target!r} with {options}: {type(error).__name__}: {error}",
            where=f"target {backend.target!r}",
        ) from error
    if not callable(getattr(program, method, None)):
        raise UserFault(
            f"{backend.target!r} has no method {method}()",
            where=f"target {backend.target!r}",
            fix="an expert has answer(prompt, pictures), a tool has run(picture, **args)",
        )
    return program


def _from_entry_point(name: str, group: Group) -> Any:
    found = entry_points(group=group)
    for point in found:
        if point.name == name:
            try:
                return point.load()
            except Exception as error:  # importing runs foreign code
                raise UserFault(
                    f"cannot load the entry point {name!r}: {type(error).__name__}: {error}",
                    where=f"{group} = {point.value}",
                ) from error
    raise UserFault(
        f"no installed package has an entry point {name!r} in the group {group!r}",
        where=f"target {name!r}",
        fix=_did_you_mean(nearest(name, list(found.names))) or "or write it as 'package.module:Class'",
    )


def _did_you_mean(names: tuple[str, ...]) -> str | None:
    return f"did you mean {' or '.join(map(repr, names))}?" if names else None
