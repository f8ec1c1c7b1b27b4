"""Foreign text that cannot act.

The one idea: words from experts, tools, images and questions are data. Before they enter a prompt, every
bracket with which they could open or close a protocol tag, a chat marker or a media placeholder is replaced
by a look-alike that no tokenizer and no parser treats as one (`<` by `‹`, `>` by `›`, `[` by `⟦`). One
character for one character, so the text stays readable and its length the same; applying it twice changes
nothing more.
"""

from __future__ import annotations

import re
import unicodedata

from registry.markers import CHAT_NAMES, INSTRUCTION_NAMES, PROTOCOL_NAMES

_NAMES = f"{PROTOCOL_NAMES}|{CHAT_NAMES}"
# Zero-width characters and spaces inside a bracket do not make a tag harmless once a tokenizer drops them.
_GAP = "[\\s\u00ad\u200b-\u200f\u2060\ufeff]{0,8}"
_TAG = re.compile(rf"<{_GAP}/?{_GAP}(?:{_NAMES})(?![\w])[^<>]{{0,64}}>?", re.IGNORECASE)
_BAR_OPENS = re.compile(rf"<{_GAP}/?{_GAP}\|")
_BAR_CLOSES = re.compile(rf"\|{_GAP}>")
_INST = re.compile(rf"\[/?(?:{INSTRUCTION_NAMES})\]", re.IGNORECASE)
_OPEN, _CLOSE, _SQUARE = "‹", "›", "⟦"


def neutralise(text: str) -> str:
    """The same text with every acting bracket replaced; lone surrogates, which no tokenizer takes, become
    `?`."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    folded = _fold(text)
    if not any(mark in folded for mark in "<>["):
        return text
    changes: dict[int, str] = {}
    for pattern in (_TAG, _BAR_OPENS, _BAR_CLOSES):
        for match in pattern.finditer(folded):
            if folded[match.start()] == "<":
                changes[match.start()] = _OPEN
            if folded[match.end() - 1] == ">":
                changes[match.end() - 1] = _CLOSE
    for match in _INST.finditer(folded):
        changes[match.start()] = _SQUARE
    if not changes:
        return text
    characters = list(text)
    for position, replacement in changes.items():
        characters[position] = replacement
    return "".join(characters)


def _fold(text: str) -> str:
    """Compatibility forms (full-width `＜`, `｜`, letters) to plain ones, one character for one character."""
    if text.isascii():
        return text
    return "".join(c if c.isascii() else _fold_character(c) for c in text)


def _fold_character(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) == 1 else character
