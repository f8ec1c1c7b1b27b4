"""What may stand in a tool's text: characters that can be written anywhere, without a model's own packaging."""

from __future__ import annotations

import re

# Everything that is no character of a text: controls but for tab and line feed, lone surrogates, noncharacters.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_PACKAGING = re.compile(r"<\|(?:begin|end)_of_box\|>")  # GLM's models put their answer between these
_FENCE = re.compile(r"\A```[A-Za-z0-9]*\n(.*?)\n?```\Z", re.DOTALL)


def printable(text: str) -> str:
    """`text` without control characters and lone surrogates; line ends are line feeds."""
    return _UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def unpacked(text: str) -> str:
    """A reply's text without the code fence or the marks that a model puts around all of it."""
    plain = _PACKAGING.sub("", printable(text)).strip()
    fenced = _FENCE.match(plain)
    return fenced[1].strip() if fenced and "```" not in fenced[1] else plain
