"""Rows of a split, read when they are asked for.

The one idea: every arm reads the rows anew, one at a time with its pictures, so that memory does not grow with their
number. The first complete reading leaves behind what is small: ids in order, how many rows could not be used, and the
rows themselves where all their pictures together are small. The first row is read at the start, so that a benchmark
that cannot be had ends it before anything runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from sys import intern

from eval.benchmarks.tally import Tally
from eval.row_sources import Entry, Source
from eval.shard import Shard
from orchestrator.task import Task
from registry.errors import UserFault

_KEPT_BYTES = 32 << 20  # of pictures: rows that fit are read once for all arms


@dataclass(frozen=True)
class _Known:
    """What a complete reading left. ``entries``: ``None`` where they would take too much memory."""

    ids: tuple[str, ...]
    shared: frozenset[str]
    clusters: dict[str, str]
    skipped: dict[str, int]
    entries: tuple[Entry, ...] | None


class Rows:
    """The rows of one split, in order; iterating reads them."""

    def __init__(
        self,
        split: str,
        source: Source,
        *,
        wanted: int | None = None,
        shard: Shard | None = None,
        kept_bytes: int = _KEPT_BYTES,
    ) -> None:
        """``wanted``: at most so many, the first ones; of those, the shard's. ``kept_bytes``: rows whose pictures
        take no more are kept after the first complete reading."""
        self.split = split
        self._kept_bytes = kept_bytes
        self._source, self._wanted, self._shard = source, wanted, shard
        self._known: _Known | None = None
        self._begun: tuple[Tally, Iterator[Entry], list[Entry]] | None = None

    def begin(self) -> None:
        """Read the first row; the next reading goes on from there.

        Raises UserFault where the rows cannot be had, or there is none."""
        tally = self._source.tally()
        entries = self._open(tally)
        first = list(islice(entries, 1))
        if not first and self._shard is None:
            raise UserFault(f"the split {self.split!r} holds no rows", where=self._source.place)
        self._begun = (tally, entries, first)

    def __iter__(self) -> Iterator[Entry]:
        """Raises UserFault: a row cannot be used and that ends the reading, or an id is used twice."""
        if self._known is not None and self._known.entries is not None:
            yield from self._known.entries
            return
        if self._begun is None:
            tally = self._source.tally()
            self._begun = (tally, self._open(tally), [])
        tally, rest, first = self._begun
        self._begun = None
        ids: list[str] = []
        shared: set[str] = set()
        clusters: dict[str, str] = {}
        kept: list[Entry] | None = []
        size = 0
        for entry in chain(first, rest):
            row_id = intern(entry.task.row_id)
            ids.append(row_id)
            if entry.shared:
                shared.add(row_id)
            if entry.cluster is not None:
                clusters[row_id] = intern(entry.cluster)
            size += sum(len(picture.png) for picture in entry.task.pictures)
            if kept is not None and size <= self._kept_bytes:
                kept.append(entry)
            else:
                kept = None
            yield entry
        skipped = {reason: count for reason, count in tally.reasons.most_common()}
        self._known = _Known(tuple(ids), frozenset(shared), clusters, skipped, None if kept is None else tuple(kept))

    @property
    def read_through(self) -> bool:
        """Whether the rows have been read to the end once, so that what follows costs nothing."""
        return self._known is not None

    @property
    def ids(self) -> Sequence[str]:
        """Ids in order."""
        return self._knowledge().ids

    @property
    def shared(self) -> frozenset[str]:
        """Ids of rows whose wording serves several families, so that the words alone cannot decide."""
        return self._knowledge().shared

    @property
    def clusters(self) -> Mapping[str, str]:
        """Row id -> the question that it asks together with other rows."""
        return self._knowledge().clusters

    @property
    def skipped(self) -> dict[str, int]:
        """Rows that could not be used, by reason, most frequent first."""
        return self._knowledge().skipped

    @property
    def tasks(self) -> Tasks:
        """The rows as tasks alone."""
        return Tasks(self)

    def expected(self) -> int | None:
        """How many rows there are, without reading them: exact where they are drawn or were read, else an estimate;
        ``None``: not known."""
        if self._known is not None:
            return len(self._known.ids)
        most = self._source.most()
        bounds = [bound for bound in (most, self._wanted) if bound is not None]
        if not bounds:
            return None
        count, shard = min(bounds), self._shard
        return count if shard is None else max(0, -(-(count - shard.index + 1) // shard.count))

    def find(self, row_ids: Collection[str]) -> Iterator[Task]:
        """The tasks of these rows; reading ends with the last of them."""
        missing = set(row_ids)
        if self._known is not None:
            missing &= set(self._known.ids)
        if not missing:
            return
        for entry in self:
            if entry.task.row_id in missing:
                missing.discard(entry.task.row_id)
                yield entry.task
                if not missing:
                    return

    def _knowledge(self) -> _Known:
        if self._known is None:
            for _ in self:
                pass
        assert self._known is not None
        return self._known

    def _open(self, tally: Tally) -> Iterator[Entry]:
        entries = islice(self._checked(self._source.read(tally)), self._wanted)
        return entries if self._shard is None else self._shard.take(entries)

    def _checked(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        """Raises UserFault for an id that comes again. Eight bytes of each are kept."""
        seen: set[int] = set()
        try:
            for entry in entries:
                key = int.from_bytes(hashlib.blake2b(entry.task.row_id.encode(), digest_size=8).digest())
                if key in seen:
                    raise UserFault(
                        f"two rows have the id {entry.task.row_id!r}",
                        where=self._source.place,
                        fix="give each row an id",
                    )
                seen.add(key)
                yield entry
        except UserFault as fault:  # readers name the options of `maestro benchmarks`; here they are keys
            for option, key in (("--data-root", "data.root"), ("--text-only", "data.text_only=true")):
                if fault.fix and "`maestro benchmarks " not in fault.fix:
                    fault.fix = fault.fix.replace(option, key)
            raise


class Tasks:
    """A view of rows as tasks: iterating reads the rows, the length is known after one reading."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Task]:
        return (entry.task for entry in self._rows)

    def __len__(self) -> int:
        return len(self._rows.ids)
