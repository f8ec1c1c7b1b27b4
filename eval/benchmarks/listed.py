"""A list in one cell of a table: JSON, or a Python list as VLMEvalKit writes it.

The one idea: a Python list is looked at before it is evaluated. Only texts and plain numbers, one after another, may
stand in it, and their number is bounded, so that a hostile cell costs no more than its own length.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

MAX_CHARS = 64 * 1024 * 1024
MAX_ITEMS = 4096
_TEXT = r"'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'" + "|" + r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_ITEM = re.compile(rf"\s*+({_TEXT}|-?[0-9][0-9.eE+-]*+|None|True|False)\s*+(,|\])")


def read_list(text: str) -> Any:
    """The value of a cell that is JSON, or a list of Python texts, numbers and None. Raises ValueError for another."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    stripped = text.strip()
    if len(stripped) > MAX_CHARS:
        raise ValueError(f"a list of {len(stripped)} characters, the limit is {MAX_CHARS}")
    if not _is_flat(stripped):
        raise ValueError("neither JSON nor a Python list of texts")
    try:
        return ast.literal_eval(stripped)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("neither JSON nor a Python list of texts") from None


def _is_flat(text: str) -> bool:
    if not text.startswith("["):
        return False
    place, ended = 1, text[1:].strip() == "]"
    for _ in range(MAX_ITEMS if not ended else 0):
        item = _ITEM.match(text, place)
        if item is None:
            return False
        place = item.end()
        if item[2] == "]" or text[place:].strip() == "]":  # a comma may stand behind the last one
            return item[2] != "]" or place == len(text)
    return ended
