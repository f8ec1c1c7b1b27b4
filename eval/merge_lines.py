"""The lines of many journals, found by trajectory and copied as they were written.

The one idea: of each journal only where its lines lie is kept in memory. The first files stay open between lines; as
shards take turns row by row, any rule that closed the oldest would close each just before it is needed, so the files
beyond are opened for one line and closed again. However many shards there are, few files are open.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from eval.facts import Key
from eval.journal_lines import read_lines
from registry.errors import UserFault

MOST_OPEN = 32
"""Files that stay open."""


class Place(NamedTuple):
    """A line in its file, in bytes; ``ended`` where its line end is there; ``valid`` as its trajectory says;
    ``digest``: of its row, ``None`` in journals that lack it."""

    offset: int
    length: int
    ended: bool
    valid: bool
    digest: str | None


class JournalLines:
    """The last line of every trajectory in each of ``paths``; nothing is locked, mended or written."""

    def __init__(self, paths: Sequence[Path], *, most_open: int = MOST_OPEN) -> None:
        """Read where all lines are.

        Raises:
            UserFault: a file cannot be read, is broken before its last whole line, or is of another version.
        """
        self._paths, self._most_open = tuple(paths), most_open
        self._open: dict[int, int] = {}
        self._places = [_places(path) for path in self._paths]

    def __enter__(self) -> JournalLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    @property
    def total(self) -> int:
        return sum(map(len, self._places))

    def keys(self, index: int) -> Iterable[Key]:
        """The trajectories of one file."""
        return self._places[index].keys()

    def place(self, index: int, key: Key) -> Place | None:
        return self._places[index].get(key)

    def finished(self) -> set[Key]:
        """The trajectories of all files that no failure ended."""
        return {key for places in self._places for key, place in places.items() if place.valid}

    def copy(self, index: int, key: Key) -> bytes:
        """The line of one trajectory, line end included. Raises UserFault where the file has shrunk since."""
        place = self._places[index][key]
        kept = self._open.get(index)
        try:
            descriptor = os.open(self._paths[index], os.O_RDONLY) if kept is None else kept
            try:
                text = os.pread(descriptor, place.length, place.offset)
            finally:
                if kept is None and len(self._open) < self._most_open:
                    self._open[index] = descriptor
                elif kept is None:
                    os.close(descriptor)
        except OSError as error:
            raise _unreadable(self._paths[index], error) from error
        if len(text) != place.length:
            raise UserFault(
                "the journal became shorter while it was read",
                where=str(self._paths[index]),
                fix="wait until nothing writes it, then merge again",
            )
        return text if place.ended else text + b"\n"


def _places(path: Path) -> dict[Key, Place]:
    try:
        lines = read_lines(path, path.stat().st_size)
        return {
            line.facts.key: Place(
                line.offset, line.end - line.offset, line.ended, line.facts.valid, line.facts.row_digest
            )
            for line in lines
        }
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> UserFault:
    return UserFault(
        f"the journal cannot be read: {error.strerror or error}",
        where=str(path),
        fix="give the folder that `maestro evaluate` wrote (its --run)",
    )
