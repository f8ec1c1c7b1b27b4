"""What is known so far, in one file that survives kill -9: candidate rows, what was skipped, how far each source is.

The one idea: a shard of rows and the place up to which their source was read go into one transaction, so a run that
was stopped goes on where the last shard ended. SQLite does the journal, the order and the looking up.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train.data.evaluated import EvaluatedPicture, EvaluatedRow, Leak
from train.data.row import MixtureRow, Skipped

FILE = "work.sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS progress (part TEXT PRIMARY KEY, read INTEGER NOT NULL, done INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS candidates (
    source TEXT, key INTEGER, content BLOB NOT NULL, row TEXT NOT NULL, digests BLOB NOT NULL, PRIMARY KEY (source, key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS by_content ON candidates (content);
CREATE TABLE IF NOT EXISTS pictures (
    source TEXT, key INTEGER, place INTEGER, data BLOB NOT NULL, PRIMARY KEY (source, key, place)
);
CREATE TABLE IF NOT EXISTS skipped (source TEXT, row TEXT, reason TEXT, what TEXT);
CREATE TABLE IF NOT EXISTS leaks (
    source TEXT, key INTEGER, row TEXT, kind TEXT, benchmark TEXT, other TEXT, detail TEXT, PRIMARY KEY (source, key)
);
CREATE TABLE IF NOT EXISTS evaluated (
    benchmark TEXT, row TEXT, place INTEGER, text TEXT, digest BLOB, hash BLOB, thumbnail BLOB
);
"""


@dataclass(frozen=True)
class Candidate:
    """A row that may be taken. key: its place in the seeded order of its source. content: digest of what it asks."""

    key: int
    content: bytes
    row: MixtureRow
    digests: tuple[bytes, ...]


class Workspace:
    """The file of one preparation. `facts` says which: another one's is refused."""

    def __init__(self, folder: Path, identity: str) -> None:
        path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(path, timeout=10.0)
            # Large pages and no second copy in a log of changes: most of what is written are new pictures.
            self._base.execute("PRAGMA page_size=16384")
            self._base.execute("PRAGMA journal_mode=TRUNCATE")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise UserFault(
                f"cannot keep the work: {error}", where=str(path), fix="choose another out=FOLDER"
            ) from error
        self.path = path
        known = self._one("SELECT value FROM facts WHERE name = 'identity'")
        if known is not None and known != identity:
            self._base.close()
            raise UserFault(
                "the folder holds the work of another mixture: its config, data or system prompt differs",
                where=str(path),
                fix="give another out=FOLDER, or start anew with --restart",
            )
        with self._base:
            self._base.execute("INSERT OR IGNORE INTO facts VALUES ('identity', ?)", (identity,))

    def close(self) -> None:
        self._base.close()

    def progress(self, part: str) -> tuple[int, bool]:
        """Rows read of a source or benchmark, and whether that was all."""
        found = self._base.execute("SELECT read, done FROM progress WHERE part = ?", (part,)).fetchone()
        return (int(found[0]), bool(found[1])) if found else (0, False)

    def store(
        self,
        part: str,
        read: int,
        *,
        done: bool = False,
        candidates: tuple[Candidate, ...] = (),
        leaks: tuple[tuple[int, str, Leak], ...] = (),
        skipped: tuple[Skipped, ...] = (),
        evaluated: tuple[EvaluatedRow, ...] = (),
        capacity: int = 0,
    ) -> None:
        """One shard, wholly or not at all. Of a source's candidates the `capacity` with the least keys are kept."""
        try:
            with self._base as base:
                for candidate in candidates:
                    self._add(part, candidate)
                if candidates:
                    self._drop_beyond(part, capacity)
                base.executemany(
                    "INSERT OR REPLACE INTO leaks VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [(part, key, row, x.kind, x.benchmark, x.row, x.detail) for key, row, x in leaks],
                )
                base.executemany(
                    "INSERT INTO skipped VALUES (?, ?, ?, ?)", [(part, s.row, s.reason, s.what) for s in skipped]
                )
                base.executemany("INSERT INTO evaluated VALUES (?, ?, ?, ?, ?, ?, ?)", _flat(evaluated))
                base.execute("INSERT OR REPLACE INTO progress VALUES (?, ?, ?)", (part, read, int(done)))
        except sqlite3.Error as error:
            raise UserFault(
                f"cannot keep the work: {error}", where=str(self.path), fix="free some space, then run it again"
            ) from error

    def _add(self, source: str, candidate: Candidate) -> None:
        twin = self._base.execute(
            "SELECT source, key FROM candidates WHERE content = ?", (candidate.content,)
        ).fetchone()
        row = candidate.row
        if twin is not None:
            if twin[0] != source or twin[1] <= candidate.key:
                reason = ("asked twice", f"the same question about the same picture, also in {twin[0]}")
                self._base.execute("INSERT INTO skipped VALUES (?, ?, ?, ?)", (source, row.id, *reason))
                return
            self._remove(source, twin[1])
        fields = {name: getattr(row, name) for name in ("id", "benchmark", "question", "answer", "choices", "group")}
        text = json.dumps({**fields, "extra": dict(row.extra)}, ensure_ascii=False)
        self._base.execute(
            "INSERT OR REPLACE INTO candidates VALUES (?, ?, ?, ?, ?)",
            (source, candidate.key, candidate.content, text, b"".join(candidate.digests)),
        )
        self._base.executemany(
            "INSERT OR REPLACE INTO pictures VALUES (?, ?, ?, ?)",
            [(source, candidate.key, place, data) for place, data in enumerate(row.pictures)],
        )

    def _drop_beyond(self, source: str, capacity: int) -> None:
        beyond = self._base.execute(
            "SELECT key FROM candidates WHERE source = ? ORDER BY key LIMIT -1 OFFSET ?", (source, capacity)
        ).fetchall()
        for (key,) in beyond:
            self._remove(source, key)

    def _remove(self, source: str, key: int) -> None:
        self._base.execute("DELETE FROM candidates WHERE source = ? AND key = ?", (source, key))
        self._base.execute("DELETE FROM pictures WHERE source = ? AND key = ?", (source, key))

    def highest_wanted(self, source: str, capacity: int) -> int | None:
        """The key from which on rows are of no use; None while there is room."""
        return self._one(
            "SELECT key FROM candidates WHERE source = ? ORDER BY key LIMIT 1 OFFSET ?", source, capacity - 1
        )

    def keys(self, source: str) -> Iterator[tuple[int, str, tuple[bytes, ...]]]:
        """(key, row id, picture digests) of the candidates, in the seeded order."""
        query = "SELECT key, json_extract(row, '$.id'), digests FROM candidates WHERE source = ? ORDER BY key"
        for key, row, digests in self._base.execute(query, (source,)):
            yield key, row, tuple(digests[i : i + 16] for i in range(0, len(digests), 16))

    def row(self, source: str, key: int, split: str) -> MixtureRow:
        """One candidate with its pictures."""
        text = self._one("SELECT row FROM candidates WHERE source = ? AND key = ?", source, key)
        query = "SELECT data FROM pictures WHERE source = ? AND key = ? ORDER BY place"
        pictures = tuple(data for (data,) in self._base.execute(query, (source, key)))
        fields: dict[str, Any] = json.loads(text)
        choices = fields.pop("choices")
        return MixtureRow(**fields, choices=None if choices is None else tuple(choices), pictures=pictures, split=split)

    def leaks(self, source: str, below: int) -> list[dict[str, str]]:
        """Leaks among the rows that would have been taken."""
        query = "SELECT row, kind, benchmark, other, detail FROM leaks WHERE source = ? AND key <= ? ORDER BY key"
        names = ("row", "kind", "benchmark", "benchmark_row", "detail")
        found = self._base.execute(query, (source, below))
        return [{"source": source, **dict(zip(names, one, strict=True))} for one in found]

    def skipped(self) -> Iterator[dict[str, str]]:
        query = "SELECT source, row, reason, what FROM skipped ORDER BY rowid"
        for one in self._base.execute(query):
            yield dict(zip(("source", "row", "reason", "what"), one, strict=True))

    def evaluated(self) -> Iterator[EvaluatedRow]:
        """All rows of all benchmarks."""
        query = "SELECT benchmark, row, text, digest, hash, thumbnail FROM evaluated ORDER BY rowid"
        for (benchmark, row), parts in groupby(self._base.execute(query), key=itemgetter(0, 1)):
            records = list(parts)
            shown = tuple(EvaluatedPicture(*record[3:]) for record in records if record[3] is not None)
            yield EvaluatedRow(benchmark, row, records[0][2], shown)

    def _one(self, query: str, *values: Any) -> Any:
        found = self._base.execute(query, values).fetchone()
        return None if found is None else found[0]


def _flat(rows: tuple[EvaluatedRow, ...]) -> Iterator[tuple[Any, ...]]:
    """One record a picture; rows without any get one too."""
    for row in rows:
        if not row.pictures:
            yield (row.benchmark, row.row, None, row.text, None, None, None)
        for place, picture in enumerate(row.pictures):
            yield (row.benchmark, row.row, place, row.text, *picture)
