"""One SKILL.md: YAML front matter between two `---` lines, then instructions in Markdown.

The one idea: front matter in the wild is sloppy (`description: Use when: ...` is no YAML), so it is read twice
at most: strictly, as registry files are; where that fails, line by line, for the few fields that are needed.
Either way text stays text, tags build nothing, and sizes are bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from registry.errors import Fault
from registry.yamltree import Mapping, Node, Scalar, Sequence, parse_tree

MAX_FRONT_MATTER = 64 * 1024  # characters
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_FIELD = re.compile(r"^([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*))?$")
_BLOCK_MARK = re.compile(r"[|>][+-]?\d?[+-]?")
_KEYWORD_FIELDS = ("keywords", "tags", "triggers")
_CONTROL = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029\x85\ufeff]")


class NotASkill(Exception):
    """Why a document can't be imported, in words; `line` counts from 1."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True)
class Document:
    """What a SKILL.md says. Empty where it says nothing; `notes` tell what was read in spite of faults."""

    name: str
    description: str
    keywords: tuple[str, ...]
    body: str
    notes: tuple[str, ...] = ()


def read_document(text: str) -> Document:
    """Take a SKILL.md apart. Raises NotASkill."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    start = _FENCE.match(text.lstrip("\n"))
    if start is None:
        raise NotASkill("has no front matter; it must begin with a line '---', then 'name:' and 'description:'", 1)
    skipped = len(text) - len(text.lstrip("\n"))
    after = skipped + start.end()
    end = _END.search(text, after + 1, after + 1 + MAX_FRONT_MATTER)
    if end is None:
        longer = len(text) - after > MAX_FRONT_MATTER
        reason = f"within {MAX_FRONT_MATTER} characters" if longer else "before the end of the file"
        raise NotASkill(f"the front matter has no closing line '---' {reason}", skipped + 1)
    front, notes = text[after + 1 : end.start()], []
    faults: list[Fault] = []
    # What YAML can't hold at all is dropped first: a stray control character costs no document.
    clean = _CONTROL.sub("", front)
    tree = parse_tree(clean, "", faults)
    if isinstance(tree, Mapping):
        fields = {key.strip().lower(): _words(node) for key, (_, node) in tree.entries.items()}
    else:
        fields = {key: [value] for key, value in _lines(clean).items()}
    if not "".join(fields.get("description", [])):
        # An unquoted value that begins with '#' is a comment to YAML, and meant as the value.
        fields["description"] = [_lines(clean).get("description", "").lstrip("# ")]
    if faults:
        line = skipped + 1 + (faults[0].line or 1)
        notes.append(f"line {line} of the front matter is not proper YAML; read as far as it goes")
    body = _CONTROL.sub("", text[end.end() :])
    if _CONTROL.search(text):
        notes.append("control characters are left out")
    keywords = [word for field in _KEYWORD_FIELDS for entry in fields.get(field, []) for word in entry.split(",")]
    return Document(
        name=" ".join(fields.get("name", [])).strip(),
        description=" ".join(" ".join(fields.get("description", [])).split()),
        keywords=tuple(dict.fromkeys(word.strip() for word in keywords if word.strip())),
        body="\n".join(line.rstrip() for line in body.split("\n")).strip("\n"),
        notes=tuple(notes),
    )


def _words(node: Node) -> list[str]:
    """The texts of a value: its own, or those of a list. What is nested deeper is not asked for."""
    if isinstance(node, Scalar):
        return [node.text]
    if isinstance(node, Sequence):
        return [item.text for item in node.items if isinstance(item, Scalar)]
    return []


def _lines(front: str) -> dict[str, str]:
    """`key: value` lines as they stand; a line that is indented goes on with the one before."""
    found: dict[str, str] = {}
    current: str | None = None
    for line in front.split("\n"):
        match = _FIELD.match(line)
        if match:
            current = match[1].lower() if match[1].lower() not in found else None
            if current is not None:
                value = (match[2] or "").strip()
                found[current] = "" if _BLOCK_MARK.fullmatch(value) else _unquoted(value)
        elif current is not None and line[:1] in (" ", "\t"):
            found[current] = f"{found[current]} {line.strip()}".strip()
    return found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
