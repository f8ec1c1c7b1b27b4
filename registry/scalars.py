"""Scalars of a registry file: text stays text.

YAML 1.1 would turn `on` into true, `1.10` into 1.1, `08080` into an octal guess and `1:30` into 90. Here
each scalar is text; a field of the schema that is a number or a switch reads the text as such. The options
of a program have no schema: there an unquoted scalar becomes a number or a switch only if nothing is lost
by it.
"""

from __future__ import annotations

from typing import Any


class Plain(str):
    """The text of a scalar that was written without quotes."""

    __slots__ = ()


_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None}


def lossless(value: Any) -> Any:
    """Read unquoted scalars as numbers and switches where writing them back gives the same characters.

    `640` becomes 640 and `0.5` becomes 0.5; `1.10`, `08080`, `1:30`, `on` and anything quoted stay text.
    """
    if isinstance(value, dict):
        return {str(key): lossless(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [lossless(item) for item in value]
    if not isinstance(value, Plain):
        return value
    text = str(value)
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > 24 or text[-1:].isalpha():
        return text
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        if repr(number) == text:
            return number
    return text
