"""Rendering the templates and conditions of procedures, in a sandbox.

Templates are the integrator's, the values inside them come from policies, experts and tools. Values are never
compiled as templates; a template can neither reach Python's insides nor build something enormous.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template
from jinja2.environment import TemplateExpression
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST_TEXT = 1_000_000  # characters of one rendered template
_LARGEST_FACTOR = 10_000


class TemplateFault(Exception):
    """A template or condition that cannot be rendered with the values at hand."""


class Saved(str):
    """What a step saved, as templates see it: text by itself, with `.text`, `.data` and `.json` (the data
    as one line of JSON). Empty, and so false, for a step that was passed over."""

    data: Any
    json: str

    def __new__(cls, text: str = "", data: Any = None, json: str = "null") -> Saved:
        saved = super().__new__(cls, text)
        saved.data, saved.json = data, json
        return saved

    @property
    def text(self) -> str:
        """The text alone."""
        return str.__str__(self)


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiplication and powers of moderate size only: 'x' * 10 ** 10 would fill the memory."""
        sizes = [value if isinstance(value, int | float) else len(value) for value in (left, right)]
        if operator == "**" and max(map(abs, sizes)) > 100:
            raise SecurityError("a power with a base or an exponent over 100")
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if not numbers and max(sizes) > _LARGEST_FACTOR:
            raise SecurityError(f"repeated to more than {_LARGEST_FACTOR} times")
        return super().call_binop(context, operator, left, right)


_ENVIRONMENT = _Sandbox(undefined=StrictUndefined, keep_trailing_newline=True)


def render(template: str, values: dict[str, Any]) -> str:
    """The template's text. Raises TemplateFault."""
    try:
        pieces: list[str] = []
        length = 0
        for piece in _compiled(template).generate(values):
            pieces.append(piece)
            length += len(piece)
            if length > LONGEST_TEXT:
                raise SecurityError(f"the text grew over {LONGEST_TEXT} characters")
        return "".join(pieces)
    except Exception as error:  # a template runs arbitrary operators and filters on foreign values
        raise TemplateFault(_explain(error)) from error


def holds(condition: str, values: dict[str, Any]) -> bool:
    """Whether the condition is true. Raises TemplateFault."""
    try:
        return bool(_compiled_condition(condition)(values))
    except Exception as error:  # as above
        raise TemplateFault(_explain(error)) from error


@lru_cache(maxsize=1024)
def _compiled(template: str) -> Template:
    return _ENVIRONMENT.from_string(template)


@lru_cache(maxsize=1024)
def _compiled_condition(condition: str) -> TemplateExpression:
    return _ENVIRONMENT.compile_expression(condition, undefined_to_none=False)


def _explain(error: Exception) -> str:
    return f"{type(error).__name__}: {getattr(error, 'message', None) or error}"
