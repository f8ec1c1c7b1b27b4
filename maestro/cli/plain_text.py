"""Foreign text on a terminal.

The one idea: words of experts, policies, data sets and files are shown, never obeyed. An escape sequence in them could
clear the screen, rename the window or hide what stands behind it.
"""

from __future__ import annotations

import codecs
import unicodedata

JSON_ESCAPES = "maestro.json_escapes"
"""What a stream does with characters that it cannot write: `\\udcff`, which JSON reads as the same character."""


def plain(text: str) -> str:
    """The text with every character that would steer a terminal replaced by one that is seen; line ends and tabs
    stay."""
    if text.isprintable():
        return text
    return "".join(char if _stays(char) else "\N{REPLACEMENT CHARACTER}" for char in text)


def _stays(char: str) -> bool:
    # Spaces of all widths and the joiners of Persian, Hindi and emoji are none of the printable ones, and harmless.
    return char.isprintable() or char in "\n\t\u200c\u200d" or unicodedata.category(char) == "Zs"


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


codecs.register_error(JSON_ESCAPES, _escaped)
