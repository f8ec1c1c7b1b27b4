"""Numbers as pictures print them and as answers are written."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[~$€£]?\s*([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)\s*(?:%|°|cm|mm|m|k|K|M)?")
_MINUS_SIGNS = str.maketrans({"−": "-", "–": "-", "—": "-"})
# Letters that character recognition puts for digits, undone only where the rest of the text is digits.
_LOOKALIKES = str.maketrans("OoDQlI|ZSsB", "00001112558")


def parse_number(text: str) -> float | None:
    """The number that a printed text stands for as a whole ("1,200", "3.5 cm", "1O"), or None.

    A dash behind it is the mark of its axis; numbers side by side ("200 400") are not one.
    """
    cleaned = text.translate(_MINUS_SIGNS).strip().rstrip(".-_ ")
    for candidate in (cleaned, cleaned.translate(_LOOKALIKES)):
        match = _NUMBER.fullmatch(candidate)
        if match and len(match[1]) <= 12 and any(character.isdigit() for character in cleaned):
            return float(match[1].replace(",", ""))
    return None


def first_number(text: str) -> float | None:
    """The first number anywhere in a text ("a = 12" gives 12), or None."""
    match = re.search(r"\d{1,9}(?:\.\d{1,6})?", text)
    return float(match[0]) if match else None


def format_number(value: float) -> str:
    """At most two decimals, no trailing zeros: 12.0 -> "12", 3.456 -> "3.46"."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
