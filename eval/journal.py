"""The journal of an evaluation: an append-only JSONL file with one finished trajectory and its score a line.

The one idea: a line is handed to the operating system the moment its trajectory ends, so a killed process
loses at most the trajectories in flight; ``fsync`` follows in batches, which is what a power cut costs.
Opening repairs a last line that was cut in the middle, locks the file against a second writer, and keeps
only ``Facts`` and the line's offset in memory.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from eval.facts import Facts, Key, facts_of
from registry.errors import UserFault

VERSION = 1


@dataclass(frozen=True)
class Repair:
    """What opening found at the end of the file: bytes of a half-written line that were cut off."""

    dropped_bytes: int


class Journal:
    """Reads what is there, appends what comes. A later line of the same key replaces the earlier one."""

    def __init__(self, path: Path, *, sync_lines: int = 64, sync_seconds: float = 2.0) -> None:
        """Open or create ``path``.

        Raises:
            UserFault: another process writes it, it cannot be opened, or a line that is not the last is
                broken.
        """
        self.path = path
        self._sync_lines, self._sync_seconds = sync_lines, sync_seconds
        self._unsynced, self._synced_at = 0, time.monotonic()
        self._facts: dict[Key, Facts] = {}
        self._offsets: dict[Key, int] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.repair = self._load()
        except BlockingIOError as error:
            os.close(self._fd)
            raise UserFault(
                "another evaluation is writing this journal",
                where=str(path),
                fix="wait for it to end, or give this one another folder with --run",
            ) from error
        except BaseException:
            os.close(self._fd)
            raise

    @property
    def facts(self) -> Mapping[Key, Facts]:
        return self._facts

    def append(self, *, arm: str, split: str, score: Mapping[str, Any] | None, trajectory: Mapping[str, Any]) -> Facts:
        """Write one trajectory (JSON form) with its score (``None`` where it is invalid) and return its
        facts."""
        value = None if score is None else float(score["value"])
        facts = facts_of(arm, split, value, trajectory)
        record = {"version": VERSION, "arm": arm, "split": split, "score": score, "trajectory": trajectory}
        line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
        start = os.lseek(self._fd, 0, os.SEEK_END)
        try:
            self._write(line)
        except OSError as error:
            try:
                os.ftruncate(self._fd, start)
            except OSError:
                pass  # the half line is repaired when the journal is opened next
            raise _unwritable(self.path, error) from error
        self._remember(facts, start)
        return facts

    def read(self, key: Key) -> dict[str, Any]:
        """The whole record of one trajectory, from disk."""
        with self.path.open("rb") as file:
            file.seek(self._offsets[key])
            return json.loads(file.readline())

    def sync(self) -> None:
        """Force what was written onto the disk."""
        os.fsync(self._fd)
        self._unsynced, self._synced_at = 0, time.monotonic()

    def close(self) -> None:
        if self._fd >= 0:
            self.sync()
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(self._fd, view) :]
        self._unsynced += 1
        if self._unsynced >= self._sync_lines or time.monotonic() - self._synced_at > self._sync_seconds:
            self.sync()

    def _remember(self, facts: Facts, offset: int) -> None:
        self._facts[facts.key] = facts
        self._offsets[facts.key] = offset

    def _load(self) -> Repair | None:
        size = os.fstat(self._fd).st_size
        for number, offset, line in _lines(self.path):
            end = offset + len(line)
            try:
                record = json.loads(line)
                value = None if record["score"] is None else float(record["score"]["value"])
                facts = facts_of(record["arm"], record["split"], value, record["trajectory"])
            except (ValueError, KeyError, TypeError) as error:
                if end < size or line.endswith(b"\n"):
                    raise UserFault(
                        f"a line of the journal cannot be read ({type(error).__name__}: {error})",
                        where=f"{self.path}:{number}",
                        fix="delete that line: its row runs again on the next start",
                    ) from error
                os.ftruncate(self._fd, offset)
                self.sync()
                return Repair(dropped_bytes=len(line))
            self._remember(facts, offset)
            if not line.endswith(b"\n"):
                os.write(self._fd, b"\n")
                return None  # the last line; reading on would find the line end just added
        return None


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Line number from 1, byte offset, bytes with the line end."""
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield number, offset, line
            offset += len(line)


def _unwritable(path: Path, error: OSError) -> UserFault:
    return UserFault(
        f"the journal cannot be written: {error.strerror or error}",
        where=str(path),
        fix="free space or mend the folder's rights, then start the same command again; no row is lost",
    )
