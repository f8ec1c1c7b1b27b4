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
from collections.abc import Iterator, Sequence

from registry.markers import CHAT_NAMES, INSTRUCTION_NAMES, PROTOCOL_NAMES

_NAMES = f"{PROTOCOL_NAMES}|{CHAT_NAMES}"
_GAP = r"\s{0,8}"  # spaces inside a bracket do not make a tag harmless
_TAG = re.compile(rf"<{_GAP}/?{_GAP}(?:{_NAMES})(?![\w])[^<>]{{0,64}}>?", re.IGNORECASE)
_BAR_OPENS = re.compile(rf"<{_GAP}/?{_GAP}\|")
_BAR_CLOSES = re.compile(rf"\|{_GAP}>")
_INST = re.compile(rf"\[/?(?:{INSTRUCTION_NAMES})\]", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_SELECTOR = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]")
_OPEN, _CLOSE, _SQUARE = "‹", "›", "⟦"


def neutralise(text: str) -> str:
    """The same text with every acting bracket replaced; lone surrogates, which no tokenizer takes, become
    `?`."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    changes: dict[int, str] = {}
    for seen, places in _readings(text):
        if any(mark in seen for mark in "<>["):
            changes |= _acting(seen, places)
    if not changes:
        return text
    characters = list(text)
    for position, replacement in changes.items():
        characters[position] = replacement
    return "".join(characters)


def _acting(seen: str, places: Sequence[int]) -> dict[int, str]:
    """What to put in the place of each acting bracket of a reading."""
    changes: dict[int, str] = {}
    for pattern in (_TAG, _BAR_OPENS, _BAR_CLOSES):
        for match in pattern.finditer(seen):
            if seen[match.start()] == "<":
                changes[places[match.start()]] = _OPEN
            if seen[match.end() - 1] == ">":
                changes[places[match.end() - 1]] = _CLOSE
    for match in _INST.finditer(seen):
        changes[places[match.start()]] = _SQUARE
    return changes


def _readings(text: str) -> Iterator[tuple[str, Sequence[int]]]:
    """The text in plain characters for compatibility forms (full-width `＜`, `｜`, letters), and the place of each in
    `text`; then, where it differs, the same without what is not seen: a tag that is torn by a zero-width or control
    character becomes one as soon as a tokenizer or a server drops that."""
    folded = text if text.isascii() else "".join(map(_fold_character, text))
    yield folded, range(len(text))
    if text.isascii() and not _CONTROL.search(text):
        return
    places = [place for place, character in enumerate(text) if not _unseen(character)]
    if len(places) < len(text):
        yield "".join([folded[place] for place in places]), places


def _unseen(character: str) -> bool:
    if character.isascii():
        return _CONTROL.match(character) is not None
    return unicodedata.category(character) in ("Cc", "Cf") or _SELECTOR.match(character) is not None


def _fold_character(character: str) -> str:
    if character.isascii():
        return character
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) == 1 else character
