"""Whole words in several scripts.

The one idea: text is folded (NFKC, case-folded, runs of spaces, `-` and `_` become one space) and a keyword
is found only where words end: it may not continue a word on either side. Scripts that are written without
spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan), and Korean, whose particles
cling to the word, have no such borders; there a keyword is found anywhere, but never before a combining
mark that would change its last sign.

So `bar` is found in "Bar-chart?" and "bar图", not in "barely"; `饼图` is found in "这个饼图的标题".
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_SEPARATORS = re.compile(r"[\s_-]+")
_WITHOUT_SPACES = (
    ("\u0e00", "\u0eff"),  # Thai, Lao
    ("\u0f00", "\u0fff"),  # Tibetan
    ("\u1000", "\u109f"),  # Burmese
    ("\u1100", "\u11ff"),  # Hangul letters
    ("\u1780", "\u17ff"),  # Khmer
    ("\u2e80", "\u31ff"),  # CJK radicals, kana, bopomofo, compatibility letters
    ("\u3400", "\u4dbf"),  # CJK extension A
    ("\u4e00", "\ua4cf"),  # CJK, Yi
    ("\uac00", "\ud7ff"),  # Hangul syllables
    ("\uf900", "\ufaff"),  # CJK compatibility
    ("\U00020000", "\U0003ffff"),  # CJK extensions
)


@lru_cache(maxsize=16384)
def fold(text: str) -> str:
    """The form in which words are compared."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _SEPARATORS.sub(" ", folded).strip()


def holds(text: str, keyword: str) -> bool:
    """Whether the folded `text` holds the folded `keyword` as whole words."""
    if not keyword:
        return False
    at = text.find(keyword)
    while at >= 0:
        end = at + len(keyword)
        before = text[at - 1] if at else " "
        after = text[end] if end < len(text) else " "
        if not _is_mark(after) and not _joined(before, keyword[0]) and not _joined(keyword[-1], after):
            return True
        at = text.find(keyword, at + 1)
    return False


def _joined(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word of a script that puts spaces between words."""
    return _in_word(left) and _in_word(right)


@lru_cache(maxsize=4096)
def _in_word(character: str) -> bool:
    if any(first <= character <= last for first, last in _WITHOUT_SPACES):
        return False
    return unicodedata.category(character)[0] in "LNM"


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"
