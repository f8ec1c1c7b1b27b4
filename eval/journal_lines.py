"""The lines of a journal's file: which are whole, and where the last whole one ends.

The one idea: a kill, a power cut or a full disk can only spoil the end of an append-only file. So whatever stands
behind the last readable line is a broken end, however long and of whatever bytes; a broken line that readable ones
follow is something else (an editor, a bad disk), and a person must look at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.facts import Facts, facts_of
from registry.errors import UserFault

VERSION = 1
MAX_LINE = 1 << 28
"""Bytes; a longer line cannot be a record, and is read in pieces."""
_DECODER = json.JSONDecoder()
_BROKEN = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Line:
    """One whole record: ``offset`` of its first byte, ``end`` behind its last (line end included where
    ``ended``)."""

    offset: int
    end: int
    ended: bool
    facts: Facts


def read_lines(path: Path, size: int) -> Iterator[Line]:
    """The whole records among the first ``size`` bytes, in order.

    Raises UserFault with the line's number for a broken line before the last whole one, and for a record of another
    version.
    """
    broken: UserFault | None = None
    offset = number = 0
    with path.open("rb") as file:
        while offset < size and (text := file.readline(MAX_LINE)):
            number += 1
            line, reason = _whole(path, number, offset, text)
            if line is not None and broken is not None:
                raise broken
            if line is not None:
                yield line
            if reason is not None and broken is None:
                broken = UserFault(
                    f"a line of the journal cannot be read ({reason})",
                    where=f"{path}:{number}",
                    fix="delete that line: its row runs again on the next start",
                )
            offset += len(text)


def decode_record(text: bytes) -> tuple[Any, int]:
    """The JSON value at the start of a line and its length in bytes. Raises ValueError where there is none."""
    # Records are written in ASCII, so places in the decoded text are places in the bytes.
    return _DECODER.raw_decode(text.decode("ascii", "replace"))


def _whole(path: Path, number: int, offset: int, text: bytes) -> tuple[Line | None, str | None]:
    """The record of a line, and why it is broken. A whole record with rubbish behind it is both: a write that lost
    only its line end, and what came after."""
    bare = text.removesuffix(b"\n")
    try:
        record, length = decode_record(bare)
        _check_version(path, number, record)
        facts = facts_of_record(record)
    except _BROKEN as error:
        return None, f"{type(error).__name__}: {error}"
    rest = len(bare) - length
    ended = rest == 0 and text.endswith(b"\n")
    reason = f"{rest} bytes behind the record" if rest else None
    return Line(offset, offset + length + ended, ended, facts), reason


def _check_version(path: Path, number: int, record: Any) -> None:
    version = record["version"]
    if isinstance(version, int) and version != VERSION:
        raise UserFault(
            f"this journal was written by another version of the program (version {version}, known is {VERSION})",
            where=f"{path}:{number}",
            fix="use the program that wrote it, or start afresh in another folder with --run",
        )


def facts_of_record(record: Any) -> Facts:
    """The facts of a line's content. Raises one of several exceptions for what is no record."""
    score, lenient = record["score"], record.get("lenient")
    value, read = (None, None) if score is None else (float(score["value"]), score.get("answer"))
    return facts_of(
        record["arm"],
        record["split"],
        value,
        record["trajectory"],
        read=read,
        lenient=None if lenient is None else float(lenient["value"]),
        groups=record.get("groups"),
        cluster=record.get("cluster"),
        judge=record.get("judge"),
        unscored=_text(record.get("unscored")),
        row_digest=_text(record.get("row_digest")),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
