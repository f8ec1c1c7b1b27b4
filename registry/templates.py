"""Syntax of the templates and conditions in procedures, checked without running them.

A template is Jinja2 text, a condition (`when`) one Jinja2 expression. Rendering is not done here: it
happens in a sandbox while an episode runs. Here a mistake is found when the registry is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import TemplateError, TemplateSyntaxError, meta, nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class _Environment(ImmutableSandboxedEnvironment):
    # Intercepted operators are not computed while parsing, so '{{ 10 ** 10 ** 10 }}' costs nothing here.
    intercepted_binops = frozenset({"*", "**"})


# What Jinja2, and Python compiling what Jinja2 generates, raise for a text that is no template.
_FAULTS = (TemplateError, SyntaxError, RecursionError, MemoryError, ValueError, OverflowError)
_ENVIRONMENT = _Environment()
_GLOBALS = frozenset(_ENVIRONMENT.globals)
_FOREIGN = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
# Each character of a condition nests the generated code one level at most, and Python takes 200 levels: up to
# this length there is nothing that compiling it would find.
_SHORT = 120


@dataclass(frozen=True)
class Reading:
    """What a template reads: variables and their attributes, or the fault that makes it unusable."""

    variables: frozenset[str] = frozenset()
    attributes: frozenset[tuple[str, str]] = frozenset()  # (variable, attribute), as in `ocr.text`
    fault: str | None = None


# What most templates consist of: plain text with `{{ name }}` and `{{ name.attribute }}` in it.
_PLAIN_OUTPUT = re.compile(r"(?<!\{)\{\{\s*([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?\s*\}\}", re.ASCII)
_OPENINGS = ("{{", "{%", "{#")
_WORDS_OF_JINJA = _GLOBALS | {
    *("and", "caller", "else", "false", "if", "in", "is", "kwargs", "loop", "none", "not", "or", "self", "super"),
    *("true", "varargs", "False", "None", "True"),
}


def read_template(source: str) -> Reading:
    """Parse a template. The fault names the line inside the template when that is not the first."""
    return _read_plain(source) or _read_any(source)


def _read_plain(source: str) -> Reading | None:
    """The reading of a template of plain outputs only, which needs no parser; None for any other."""
    if not any(opening in source for opening in _OPENINGS):
        return Reading()
    rest = _PLAIN_OUTPUT.sub(" ", source)
    if any(opening in rest for opening in _OPENINGS):
        return None
    found = _PLAIN_OUTPUT.findall(source)
    variables = frozenset(variable for variable, _ in found)
    if variables & _WORDS_OF_JINJA:
        return None
    return Reading(variables, frozenset((variable, attribute) for variable, attribute in found if attribute))


@lru_cache(maxsize=4096)
def _read_any(source: str) -> Reading:
    try:
        tree = _ENVIRONMENT.parse(source)
        if any(True for _ in tree.find_all(_FOREIGN)):
            return Reading(fault="a template can't include, import or extend another one")
        return _reading(tree)
    except _FAULTS as error:
        return Reading(fault=_explain(error))


@lru_cache(maxsize=4096)
def read_condition(source: str) -> Reading:
    """Parse a condition, that is one expression such as `ocr.text and not draft`."""
    if "{{" in source or "{%" in source:
        return Reading(fault="a condition is a bare expression, without '{{ }}'")
    try:
        tree = _expression(source)
        if len(source) > _SHORT:
            compile(_ENVIRONMENT.compile(tree, raw=True), "<condition>", "exec")
        return _reading(tree)
    except _FAULTS as error:
        return Reading(fault=_explain(error))


def _expression(source: str) -> nodes.Template:
    """One expression, parsed the way that `Environment.compile_expression` does it."""
    parser = Parser(_ENVIRONMENT, source, state="variable")
    expression = parser.parse_expression()
    if not parser.stream.eos:
        raise TemplateSyntaxError("chunk after expression", parser.stream.current.lineno)
    tree = nodes.Template([nodes.Output([expression], lineno=1)], lineno=1)
    return tree.set_environment(_ENVIRONMENT)  # type: ignore[return-value]


def _reading(tree: nodes.Template) -> Reading:
    # Looking for variables generates the code (and throws it away), which finds unknown filters and tests too.
    variables = frozenset(meta.find_undeclared_variables(tree)) - _GLOBALS
    return Reading(variables, frozenset(_attributes(tree)))


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
