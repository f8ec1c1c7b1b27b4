"""Pydantic's errors, said in the words of a registry file.

The one idea: an error's location is a path into the part; the words name the field by that path, say what
was expected, and for a misspelt key or choice give the nearest right one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from registry.names import nearest

Path = tuple[str | int, ...]
_TAGS = ("openai", "python")


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[Path, str, str | None]]:
    """Each error as (path as in the file, message, hint)."""
    for detail in details(error):
        message, hint = _words(detail, model)
        path = without_tags(detail["loc"])
        yield path[:-1] if detail["type"] == "missing" else path, message, hint


def details(error: ValidationError) -> list[ErrorDetails]:
    """The errors, less those that only follow from others: a list of faulty entries is not empty as well."""
    found = error.errors(include_url=False)
    return [
        detail
        for detail in found
        if detail["type"] != "too_short" or not any(_inside(other["loc"], detail["loc"]) for other in found)
    ]


def _inside(path: Path, outer: Path) -> bool:
    return len(path) > len(outer) and path[: len(outer)] == outer


def without_tags(path: Path) -> Path:
    """The path of an error as it stands in the file."""
    # A discriminated union puts its tag behind the field: ('backend', 'openai', 'model').
    kept: list[str | int] = []
    for index, step in enumerate(path):
        if step in _TAGS and index > 0 and path[index - 1] == "backend":
            continue
        kept.append(step)
    return tuple(kept)


def dotted(path: Path) -> str:
    """`('replicas', 0, 'url')` as `replicas[0].url`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _words(detail: ErrorDetails, model: type[BaseModel]) -> tuple[str, str | None]:
    kind, last, given = detail["type"], str(detail["loc"][-1]) if detail["loc"] else "", detail["input"]
    if kind == "extra_forbidden":
        known = fields_at(model, detail["loc"][:-1])
        return f"unknown key {last!r}; known: {', '.join(known)}", _first(last, known)
    if kind == "missing":
        return f"needs the key {last!r}", None
    if kind == "union_tag_not_found":
        return "needs the key 'type': 'openai' or 'python'", None
    if kind == "union_tag_invalid":
        tag = str(detail.get("ctx", {}).get("tag", ""))
        return f"'type' must be 'openai' or 'python', not {tag!r}", _first(tag, _TAGS)
    if kind == "literal_error":
        choices = [choice.strip("'") for choice in _expected(detail).replace(" or ", ", ").split(", ")]
        return f"must be one of {', '.join(choices)}, not {_shown(given)}", _first(str(given), choices)
    if kind == "value_error":
        return str(detail.get("ctx", {}).get("error", detail["msg"])), None
    if kind in ("too_short", "too_long"):
        return "must have at least one entry", None
    expected = _EXPECTED.get(kind)
    if expected:
        return f"must be {expected}, not {_shown(given)}", None
    wish = detail["msg"].replace("Input should be", "must be")
    return f"{wish}, not {_shown(given)}", None


_EXPECTED = {
    "string_type": "text",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _expected(detail: ErrorDetails) -> str:
    return str(detail.get("ctx", {}).get("expected", ""))


def _shown(given: Any) -> str:
    if given is None:
        return "empty"
    if isinstance(given, dict):
        return "a mapping"
    if isinstance(given, list | tuple):
        return "a list"
    text = str(given)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def fields_at(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """The keys that the part at `path` inside `model` may have (`name` is given by the mapping's key)."""
    candidates: list[type[BaseModel]] = [model]
    named = True
    for step in path:
        if isinstance(step, int):
            continue
        tagged = [part for part in candidates if _tag(part) == step]
        if tagged:
            candidates = tagged
            continue
        candidates = [
            inner
            for part in candidates
            if step in part.model_fields
            for inner in _models(part.model_fields[step].annotation)
        ]
        named = step == "subskills"
    keys = dict.fromkeys(key for part in candidates for key in part.model_fields)
    return tuple(key for key in keys if not (named and key == "name"))


def _tag(part: type[BaseModel]) -> str | None:
    field = part.model_fields.get("type")
    return None if field is None else next(iter(get_args(field.annotation)), None)


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _first(name: str, names: tuple[str, ...] | list[str]) -> str | None:
    return next(iter(nearest(name, names, 1)), None)
