"""Syntax of the templates and conditions in procedures, checked without running them.

A template is Jinja2 text, a condition (`when`) one Jinja2 expression. Rendering is not done here: it
happens in a sandbox while an episode runs. Here a mistake is found when the registry is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import TemplateError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment


class _Environment(ImmutableSandboxedEnvironment):
    # Intercepted operators are not computed while parsing, so '{{ 10 ** 10 ** 10 }}' costs nothing here.
    intercepted_binops = frozenset({"*", "**"})


# What Jinja2, and Python compiling what Jinja2 generates, raise for a text that is no template.
_FAULTS = (TemplateError, SyntaxError, RecursionError, MemoryError, ValueError, OverflowError)
_ENVIRONMENT = _Environment()
_GLOBALS = frozenset(_ENVIRONMENT.globals)
_FOREIGN = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


@dataclass(frozen=True)
class Reading:
    """What a template reads: variables and their attributes, or the fault that makes it unusable."""

    variables: frozenset[str] = frozenset()
    attributes: frozenset[tuple[str, str]] = frozenset()  # (variable, attribute), as in `ocr.text`
    fault: str | None = None


@lru_cache(maxsize=4096)
def read_template(source: str) -> Reading:
    """Parse a template. The fault names the line inside the template when that is not the first."""
    try:
        tree = _ENVIRONMENT.parse(source)
        if any(True for _ in tree.find_all(_FOREIGN)):
            return Reading(fault="a template can't include, import or extend another one")
        # Generating (not compiling) the code finds unknown filters and tests as well.
        _ENVIRONMENT.compile(tree, raw=True)
        variables = frozenset(meta.find_undeclared_variables(tree)) - _GLOBALS
        return Reading(variables, frozenset(_attributes(tree)))
    except _FAULTS as error:
        return Reading(fault=_explain(error))


@lru_cache(maxsize=4096)
def read_condition(source: str) -> Reading:
    """Parse a condition, that is one expression such as `ocr.text and not draft`."""
    if "{{" in source or "{%" in source:
        return Reading(fault="a condition is a bare expression, without '{{ }}'")
    try:
        _ENVIRONMENT.compile_expression(source)
    except _FAULTS as error:
        return Reading(fault=_explain(error))
    return read_template("{{ (" + source + ") }}")


def _attributes(tree: nodes.Template) -> Iterator[tuple[str, str]]:
    for access in tree.find_all(nodes.Getattr):
        if isinstance(access.node, nodes.Name):
            yield access.node.name, access.attr


def _explain(error: Exception) -> str:
    if isinstance(error, RecursionError | MemoryError):
        return "nested too deep"
    if isinstance(error, SyntaxError):
        return f"not an expression: {error.msg}"
    line = getattr(error, "lineno", 1) or 1
    message = getattr(error, "message", None) or str(error)
    return message.rstrip(".") + (f" (line {line} of the template)" if line > 1 else "")
