"""Counting and cutting text in tokens.

The one idea: every length limit is in tokens of the policy's own tokenizer, and text is cut between
characters before it is encoded, never between tokens after it, so that no character and no tag can break.
Only foreign text (never sampled ids) goes through here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

Side = Literal["head", "tail", "middle"]  # which part of a text is kept
MARKER = "[...]"
_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3")


@runtime_checkable
class Tokenizer(Protocol):
    """What this room needs of a tokenizer: no special tokens added, none left out, nothing cleaned up."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


def estimate_tokens(text: str) -> int:
    """Tokens of a text where no tokenizer is at hand: one per three UTF-8 bytes, rounded up (rather too
    many)."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


def count_tokens(text: str, tokenizer: Tokenizer | None) -> int:
    """Exact with a tokenizer, `estimate_tokens` without."""
    return estimate_tokens(text) if tokenizer is None else len(tokenizer.encode(text))


def cap_bytes(text: str, limit: int, side: Side = "head") -> str:
    """At most `limit` UTF-8 bytes of the text, cut between characters; guards the tokenizer against huge
    texts."""
    if len(text) * 4 <= limit:
        return text
    # No more than `limit` characters can stay, so encode only those.
    if len(text) > limit:
        half = limit // 2
        text = {"head": text[:limit], "tail": text[-limit:], "middle": text[:half] + text[-half:]}[side]
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    half = limit // 2
    pieces = {"head": (raw[:limit],), "tail": (raw[-limit:],), "middle": (raw[:half], raw[-half:])}[side]
    return "".join(piece.decode("utf-8", "ignore") for piece in pieces)


def truncate(
    text: str,
    limit: int,
    tokenizer: Tokenizer | None,
    *,
    side: Side = "head",
    wrap: Callable[[str], str] = lambda text: text,
) -> str | None:
    """The longest part of `text` for which `wrap(part)` takes at most `limit` tokens, with a marker where it
    was cut.

    side: which part stays. The marker is inside the limit. Returns None where even `wrap(MARKER)` does not
    fit.
    """
    whole, text = text, cap_bytes(text, max(4096, 64 * max(limit, 0)), side)

    def fits(candidate: str) -> bool:
        return count_tokens(wrap(candidate), tokenizer) <= limit

    if text == whole and fits(text):
        return text
    if not fits(MARKER):
        return None
    low, high = 0, len(text) + 1  # kept characters: `low` fits, `high` does not
    while high - low > 1:
        middle = (low + high) // 2
        if fits(_cut(text, middle, side)):
            low = middle
        else:
            high = middle
    return _cut(text, low, side)


def _cut(text: str, keep: int, side: Side) -> str:
    """About `keep` characters (never more) of the text and the marker."""
    if side == "head":
        head, tail = keep, 0
    elif side == "tail":
        head, tail = 0, keep
    else:
        head, tail = keep - keep // 2, keep // 2
    while head and _inside_character(text, head):
        head -= 1
    first_kept = len(text) - tail
    while first_kept < len(text) and _inside_character(text, first_kept):
        first_kept += 1
    return " ".join(part for part in (text[:head].rstrip(), MARKER, text[first_kept:].lstrip()) if part)


def _inside_character(text: str, position: int) -> bool:
    """True where a cut before `position` would part a character from its accents, selectors or joined
    emoji."""
    if position <= 0 or position >= len(text):
        return False
    after, before = text[position], text[position - 1]
    return after in _JOINERS or before == "\u200d" or unicodedata.combining(after) != 0
