"""The journal of an evaluation: an append-only JSONL file with one finished trajectory and its score a line.

The one idea: a line is handed to the operating system the moment its trajectory ends, so a killed process
loses at most the trajectories in flight; ``fsync`` follows in batches, which is what a power cut costs.
Opening repairs whatever a kill or a power cut left behind the last whole line, locks the file against a second
writer, and keeps only ``Facts`` and the line's offset in memory.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from eval.facts import Facts, Key
from eval.facts_table import FactsTable
from eval.journal_lines import VERSION, decode_record, facts_of_record, read_lines
from registry.errors import UserFault


class JournalBusy(UserFault):
    """Another process writes the journal."""


@dataclass(frozen=True)
class Repair:
    """What opening found behind the last whole line: bytes that were cut off, and the file to which they were
    moved where they were more than one half-written line."""

    dropped_bytes: int
    kept_in: Path | None = None


class Journal:
    """Reads what is there, appends what comes. A later line of the same key replaces the earlier one."""

    def __init__(
        self, path: Path, *, read_only: bool = False, sync_lines: int = 512, sync_seconds: float = 2.0
    ) -> None:
        """Open or create ``path``.

        Args:
            read_only: neither create, lock, repair nor write; what stands behind the last whole line is passed over.

        Raises:
            UserFault: another process writes it, it cannot be opened, a line before the last whole one is
                broken, or a line is of another version.
        """
        self.path = path
        self.repair: Repair | None = None
        self._read_only = read_only
        self._sync_lines, self._sync_seconds = sync_lines, sync_seconds
        self._unsynced, self._synced_at = 0, time.monotonic()
        self._facts = FactsTable()
        try:
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise (_unreadable if read_only else _unwritable)(path, error) from error
        try:
            if not read_only:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._load()
        except BlockingIOError as error:
            os.close(self._fd)
            raise JournalBusy(
                "another evaluation is writing this journal",
                where=str(path),
                fix="wait for it to end, or give this one another folder with --run",
            ) from error
        except OSError as error:
            os.close(self._fd)
            raise (_unreadable if read_only else _unwritable)(path, error) from error
        except BaseException:
            os.close(self._fd)
            raise

    @property
    def facts(self) -> Mapping[Key, Facts]:
        return self._facts

    def append(
        self,
        *,
        arm: str,
        split: str,
        score: Mapping[str, Any] | None,
        trajectory: Mapping[str, Any],
        lenient: Mapping[str, Any] | None = None,
        groups: Mapping[str, str] | None = None,
        cluster: str | None = None,
        judge: Mapping[str, Any] | None = None,
        unscored: str | None = None,
        row_digest: str | None = None,
    ) -> Facts:
        """Write one trajectory (JSON form) and return its facts.

        Args:
            score: by the official rule; ``None`` where the trajectory is invalid.
            lenient: by the lenient rule, where its value is another one.
            groups: the row's label in each of the benchmark's groupings.
            cluster: the question that the row asks together with other rows.
            judge: what a judge model was asked and said.
            unscored: why a valid trajectory has no score.
            row_digest: of the row as it was asked.
        """
        record = {"version": VERSION, "arm": arm, "split": split, "score": score}
        record |= {"lenient": lenient} if lenient is not None else {}
        record |= {"groups": dict(groups)} if groups else {}
        record |= {"cluster": cluster} if cluster is not None else {}
        record |= {"judge": dict(judge)} if judge is not None else {}
        record |= {"unscored": unscored} if unscored is not None else {}
        record |= {"row_digest": row_digest} if row_digest is not None else {}
        record["trajectory"] = trajectory
        facts = facts_of_record(record)
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
        self._facts.put(facts, start)
        return facts

    def read(self, key: Key) -> dict[str, Any]:
        """The whole record of one trajectory, from disk."""
        return decode_record(self._text(key))[0]

    def _text(self, key: Key) -> bytes:
        with self.path.open("rb") as file:
            file.seek(self._facts.note(key))
            return file.readline()

    def sync(self) -> None:
        """Force what was written onto the disk."""
        os.fsync(self._fd)
        self._unsynced, self._synced_at = 0, time.monotonic()

    def close(self) -> None:
        if self._fd >= 0:
            if not self._read_only:
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

    def _load(self) -> None:
        size = os.fstat(self._fd).st_size
        end, ended = 0, True  # of the last whole record
        for line in read_lines(self.path, size):
            self._facts.put(line.facts, line.offset)
            end, ended = line.end, line.ended
        if self._read_only:
            return
        if end < size:
            kept_in = self._keep_aside(end)
            os.ftruncate(self._fd, end)
            self.repair = Repair(size - end, kept_in)
        if not ended:
            os.write(self._fd, b"\n")
        if self.repair or not ended:
            self.sync()

    def _keep_aside(self, start: int) -> Path | None:
        """Move what is more than one half-written line into a file beside the journal before it is cut off."""
        with self.path.open("rb") as file:
            file.seek(start)
            if not any(b"\n" in block for block in iter(lambda: file.read(1 << 20), b"")):
                return None
            aside = self.path.with_name(self.path.name + ".cut")
            file.seek(start)
            with aside.open("ab") as copy:
                shutil.copyfileobj(file, copy)
                os.fsync(copy.fileno())
        return aside


def _unwritable(path: Path, error: OSError) -> UserFault:
    return UserFault(
        f"the journal cannot be written: {error.strerror or error}",
        where=str(path),
        fix="free space or mend the folder's rights, then start the same command again; no row is lost",
    )


def _unreadable(path: Path, error: OSError) -> UserFault:
    return UserFault(
        f"the journal cannot be read: {error.strerror or error}",
        where=str(path),
        fix="give the folder that `maestro evaluate` wrote (its --run)",
    )
