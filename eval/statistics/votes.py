"""The form of an answer under which votes are counted.

The one idea: two samples vote for the same answer when their answers, as the benchmark's rule read them, differ
in nothing but look-alike characters, case, runs of whitespace, a final full stop, or the way in which one number is
written. The right answer plays no part.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal, InvalidOperation

_NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?")
_MAX_DIGITS = 40


def vote_of(answer: str | None) -> str | None:
    """The canonical form of an answer as read; ``None`` (no vote) for no answer or an empty one."""
    if answer is None:
        return None
    text = " ".join(unicodedata.normalize("NFKC", answer).casefold().split())
    text = text.removesuffix(".").rstrip()
    return _number(text) or text or None


def _number(text: str) -> str | None:
    """ "1,234.50" -> "1234.5"; ``None`` where the text is not one number."""
    if len(text) > _MAX_DIGITS or not any(mark.isdigit() for mark in text) or not _NUMBER.fullmatch(text):
        return None
    try:
        value = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return f"{value.normalize():f}" if value else "0"
