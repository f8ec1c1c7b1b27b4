"""Reading an answer's text: look-alike characters folded, wrappers and punctuation at the edges taken off.

The one idea: every rule reads text through these few functions, so `（B）`, `**B**` and `\\boxed{B}` mean
the same everywhere. All are total, and linear in the text's length; `MAX_CHARS` bounds that length before any
of them runs.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

MAX_CHARS = 4096
"""Longer answers are not graded: no right answer of these benchmarks comes near it."""

_MAX_WRAPPERS = 8
_MINUS = str.maketrans(dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63", "-"))
_VULGAR = re.compile("(?<=[0-9\uff10-\uff19])(?=[\u00bc-\u00be\u2150-\u215e])")
_COMMAND = re.compile(r"\\(?:boxed|fbox|text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|emph)\s*\{")
_LEAD = re.compile(
    r"(?:(?:so|thus|therefore|hence),?\s+)?(?:the\s+)?(?:final\s+|correct\s+|right\s+)?answer\s*(?:is\s*:?|[:=])\s*"
    r"|(?:所以|因此|故)?(?:正确)?(?:最终)?(?:答案|结果)\s*(?:是|为|:)\s*:?\s*",
    re.IGNORECASE,
)
_PAIRS = {
    '"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb", "`": "`",
    "\u300a": "\u300b", "\u3008": "\u3009", "\u300c": "\u300d", "\u300e": "\u300f", "\u3010": "\u3011",
    "(": ")", "[": "]", "{": "}",
}  # fmt: skip
_QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb\u300a\u300b\u3008\u3009\u300c\u300d\u300e\u300f\u3010\u3011"
_EDGE = _QUOTES + "()[]{},;:!?*_~\u3001\u3002\u00b7\u2026"


def fold(text: str) -> str:
    """NFKC (full-width forms, compatibility ideographs), one minus sign, single spaces, no space at the
    edges.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _VULGAR.sub(" ", text)).translate(_MINUS).replace("\u2044", "/")
    return " ".join(text.split())


def unwrap(text: str) -> str:
    """Take off what wraps the whole text: markdown emphasis, quotes, brackets, `$...$`, `\\text{...}`,
    `\\boxed{...}`.
    """
    for _ in range(_MAX_WRAPPERS):
        inner = _inner(text)
        if inner is None:
            return text
        text = inner.strip()
    return text


def _inner(text: str) -> str | None:
    if len(text) < 2:
        return None
    first, last = text[0], text[-1]
    if _PAIRS.get(first) == last and _wraps_all(text, first, last):
        return text[1:-1]
    if first == last == "$":
        return text.strip("$")
    if first == "*" and last == "*" and text.strip("*"):
        return text.strip("*")
    if first == "_" and text.startswith("__") and text.endswith("__") and text.strip("_"):
        return text.strip("_")
    if first == "\\":
        if text.startswith("\\(") and text.endswith("\\)") and len(text) > 4:
            return text[2:-2]
        command = _COMMAND.match(text)
        if command and last == "}" and _wraps_all(text[command.end() - 1 :], "{", "}"):
            return text[command.end() : -1]
    return None


def _wraps_all(text: str, opener: str, closer: str) -> bool:
    """Whether the first character's partner is the last one, as in `(a)` and not as in `(a) or (b)`."""
    if opener == closer:
        return opener not in text[1:-1]
    depth = 0
    for index, char in enumerate(text):
        if char == opener:
            depth += 1
        elif char == closer:
            depth -= 1
            if depth == 0:
                return index == len(text) - 1
    return False


def strip_edges(text: str) -> str:
    """Punctuation, quotes and brackets at the edges taken off; a dot before a digit (`.5`) and signs stay."""
    text = text.rstrip(_EDGE + ". ")
    bare = text.lstrip(_EDGE + ". ")
    if bare[:1].isdigit() and text[: len(text) - len(bare)].endswith("."):
        return "." + bare
    return bare


def strip_lead(text: str) -> str:
    """Take off "The answer is", "Answer:", "答案：" in front of an answer."""
    lead = _LEAD.match(text)
    return text[lead.end() :] if lead and lead.end() < len(text) else text


@lru_cache(maxsize=2048)
def plain(text: str) -> str:
    """The comparable form of a text answer: folded, unwrapped, edges stripped, lower case."""
    return strip_edges(unwrap(fold(text))).casefold()


def plain_answer(text: str) -> str:
    """`plain` for the policy's side, where a lead-in ("the answer is") may stand before the answer."""
    return strip_edges(unwrap(strip_lead(unwrap(fold(text))))).casefold()


def too_long(text: str) -> bool:
    return len(text) > MAX_CHARS


def clip(text: str, limit: int) -> str:
    """For records: at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
