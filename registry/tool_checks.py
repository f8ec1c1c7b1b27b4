"""What must hold inside one tool: how a reply is read is said of served models alone, and only where it is read so.

A setting that nothing would read is refused, because whoever wrote it expects something of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from registry.names import nearest
from registry.schema import PythonBackend, Tool
from registry.templates import read_template

PROMPT_VARIABLES = ("query", "width", "height")
_READING = ("prompt", "reads", "box_format", "resize", "max_boxes", "zoom_rounds")
_NEEDS = {
    "box_format": ("boxes", "zoom"),
    "resize": ("boxes", "zoom"),
    "max_boxes": ("boxes",),
    "zoom_rounds": ("zoom",),
}


def check_tool(tool: Tool) -> Iterator[tuple[tuple[str | int, ...], str, str | None]]:
    """Findings inside one tool, as (path, message, hint)."""
    given = [field for field in _READING if field in tool.model_fields_set]
    if isinstance(tool.backend, PythonBackend):
        for field in given:
            yield (field,), "says how a served model's reply is read; a program gives its result by itself", None
        return
    for field in given:
        needs = _NEEDS.get(field, ())
        if needs and tool.reads not in needs:
            yield (field,), f"means nothing where 'reads' is {tool.reads!r}; it goes with {' or '.join(needs)}", None
        elif field == "resize" and tool.box_format != "resized":
            yield (field,), f"means nothing where 'box_format' is {tool.box_format!r}; it goes with resized", None
    if tool.prompt is not None:
        yield from _check_prompt(tool.prompt)


def _check_prompt(prompt: str) -> Iterator[tuple[tuple[str | int, ...], str, str | None]]:
    reading = read_template(prompt)
    if reading.fault is not None:
        yield ("prompt",), reading.fault, None
    known = ", ".join(sorted(PROMPT_VARIABLES))
    for variable in sorted(reading.variables - set(PROMPT_VARIABLES)):
        hint = next(iter(nearest(variable, PROMPT_VARIABLES, 1)), None)
        yield ("prompt",), f"no value {variable!r} here; known: {known}", hint
    for variable, attribute in sorted(reading.attributes):
        if variable in PROMPT_VARIABLES and not hasattr(str if variable == "query" else int, attribute):
            yield ("prompt",), f"{variable!r} has no {attribute!r}", None
