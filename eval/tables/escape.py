"""Untrusted names (arms, folders, benchmarks) made harmless for the place where they are written."""

from __future__ import annotations

import re

_LONGEST = 80
_MARKDOWN = re.compile(r"([\\`*_\[\]|~$])")
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)])|(?=[#+=-]))")
"""What would begin a heading, a list or a rule."""
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "|": r"\textbar{}", "[": "{[}", "]": "{]}", "*": "{*}",
    "±": r"$\pm$", "†": r"\dag{}", "–": "--", "−": "$-$", "Δ": r"$\Delta$", "\ufffd": "?",
}  # fmt: skip
_FORMULA = ("=", "+", "-", "@")


def plain(text: str) -> str:
    """One line; control characters, lone surrogates and changes of writing direction become the replacement
    character."""
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in " ".join(text.split()))


def short(text: str) -> str:
    """``plain``, of at most 80 characters."""
    shown = plain(text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."


def markdown(text: str) -> str:
    """Text that Markdown shows as it is, inside a table's cell and at the start of a line too."""
    escaped = "".join(_HTML.get(mark, mark) for mark in _MARKDOWN.sub(r"\\\1", plain(text)))
    return _BLOCK.sub(r"\1\\", escaped)


def latex(text: str) -> str:
    """Text that LaTeX sets as it is; letters beyond ASCII are left to the document's encoding."""
    return "".join(_LATEX.get(mark, mark) for mark in plain(text))


def spreadsheet(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    shown = plain(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
