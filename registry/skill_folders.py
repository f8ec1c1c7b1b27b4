"""Where Agent Skills lie: folders with a SKILL.md, found and read within bounds.

Links are never followed, so nothing outside the given folder is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from registry.front_matter import NotASkill

MAX_DOCUMENT_BYTES = 1024 * 1024
MAX_DEPTH = 8


@dataclass(frozen=True)
class Found:
    """A SKILL.md and, by name, what else is in its folder."""

    path: Path
    others: tuple[str, ...] = ()


def find_documents(folder: Path) -> Iterator[Found]:
    """Each SKILL.md in `folder`, at most `MAX_DEPTH` folders down, in the order of names. Links are not followed."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        if len(Path(root).relative_to(folder).parts) >= MAX_DEPTH:
            folders.clear()
        for name in sorted(files):
            if name.lower() == "skill.md":
                others = [f"{other}/" for other in folders] + [other for other in sorted(files) if other != name]
                yield Found(Path(root) / name, tuple(others))


def read_text(path: Path) -> str:
    """The document's text. Raises NotASkill."""
    if path.is_symlink() or not path.is_file():
        raise NotASkill("is a link or no plain file; only plain files inside the folder are read")
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise NotASkill(f"can't be read: {error.strerror or error}") from None
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise NotASkill(f"is larger than {MAX_DOCUMENT_BYTES} bytes")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise NotASkill(f"is not UTF-8 text (byte 0x{raw[error.start]:02x})", line) from None
