"""From sources and benchmarks to `train.parquet` and `validation.parquet`.

The one idea: of every source the rows with the least seeded keys are kept while it streams by, so which rows are taken
depends on the seed and the data alone, never on how often the work was stopped; nothing is written under its name
before every check has passed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from experts.images import ImageLimits
from registry.errors import UserFault
from train.data.checks import BAD_IMAGE, Checks, Leaked, evaluated_row, order_key
from train.data.config import DataConfig, Source
from train.data.evaluated import LeakIndex
from train.data.lengths import PromptLengths
from train.data.mixture import Mixture, choose
from train.data.row import MixtureRow, Read, Skipped
from train.data.workspace import Candidate, Workspace

SHARD = 128
"""Rows read between two savings: what kill -9 loses at most."""
_LARGE = 24 * 2**20  # bytes; its limit is 32 MiB
_EARLY = 20  # rows looked at before the share of faulty ones counts
DECODERS = min(8, len(os.sched_getaffinity(0)))
"""Threads that decode, hash and compare: Pillow and numpy release the interpreter's lock."""

Write = Callable[[Iterable[MixtureRow], Path], int]
Taken = Candidate | Leaked | Skipped


class Reporter(Protocol):
    """Told how far the work is."""

    def phase(self, name: str, done: int) -> None: ...

    def advance(self, rows: int) -> None: ...


@dataclass(frozen=True)
class Inputs:
    """Where rows come from: sources by their names in the config, benchmarks by their names. lengths: None where
    prompts are not measured."""

    sources: Mapping[str, Read]
    benchmarks: Mapping[str, Read]
    lengths: PromptLengths | None


def prepare(
    config: DataConfig, inputs: Inputs, work: Workspace, reporter: Reporter, *, decoders: int = DECODERS
) -> Mixture:
    """Read everything that has not been read yet and choose the rows; the same ones whatever `decoders` is.

    Raises UserFault: a source or benchmark can't be read, or has too many faulty rows.
    """
    # glibc gives the memory of every picture back, and fetches it anew for the next one, until it has once freed a
    # larger block; fetching costs nearly as much as decoding.
    bytearray(_LARGE)
    with ThreadPoolExecutor(decoders) as threads:
        return _prepare(config, inputs, work, reporter, threads)


def _prepare(
    config: DataConfig, inputs: Inputs, work: Workspace, reporter: Reporter, threads: ThreadPoolExecutor
) -> Mixture:
    for name, read in inputs.benchmarks.items():
        _index(name, read, work, config, threads, reporter)
    leaks = config.leaks
    index = LeakIndex(
        work.evaluated(),
        picture_bits=leaks.picture_bits,
        least_correlation=leaks.correlation,
        text_words=leaks.text_words,
    )
    checks = Checks(config, index, inputs.lengths)
    for name, source in config.sources.items():
        _gather(name, source, inputs.sources[name], checks, work, config, threads, reporter)
    return choose(config, work)


def capacity(source: Source) -> int:
    """Candidates kept: a quarter more than asked for, since rows that show a validation picture are left out later."""
    wanted = source.rows + source.validation_rows
    return wanted + wanted // 4 + 16


def _index(
    name: str, read: Read, work: Workspace, config: DataConfig, threads: ThreadPoolExecutor, reporter: Reporter
) -> None:
    part = f"benchmark {name}"
    place, done = work.progress(part)
    if done:
        return
    reporter.phase(part, place)
    limits = ImageLimits(max_pixels=max(config.max_pixels, ImageLimits().max_pixels))
    for shard in _shards(read, place):
        good = [row for row in shard if isinstance(row, MixtureRow)]
        rows = tuple(threads.map(lambda row: evaluated_row(row, limits), good))
        place += len(shard)
        work.store(part, place, evaluated=rows)
        reporter.advance(len(shard))
    if not place:
        raise UserFault("the benchmark has no rows", where=name, fix="give its data, or name it in leaks.without")
    work.store(part, place, done=True)


def _gather(
    name: str,
    source: Source,
    read: Read,
    checks: Checks,
    work: Workspace,
    config: DataConfig,
    threads: ThreadPoolExecutor,
    reporter: Reporter,
) -> None:
    place, done = work.progress(name)
    if done:
        return
    reporter.phase(name, place)
    most = capacity(source)
    faults = _Faults(name, config.most_faulty)
    for shard in _shards(read, place):
        limit = work.highest_wanted(name, most)
        wanted: list[tuple[int, MixtureRow]] = []
        skipped = [row for row in shard if isinstance(row, Skipped)]
        looked_at = len(skipped)
        for row in shard:
            if isinstance(row, MixtureRow):
                key = order_key(config.seed, name, row.id)
                if limit is None or key < limit:
                    wanted.append((key, row))
        taken: list[Taken] = list(threads.map(lambda pair: checks.check(*pair), wanted))
        skipped += [one for one in taken if isinstance(one, Skipped)]
        place += len(shard)
        work.store(
            name,
            place,
            candidates=tuple(one for one in taken if isinstance(one, Candidate)),
            leaks=tuple((one.key, one.row, one.leak) for one in taken if isinstance(one, Leaked)),
            skipped=tuple(skipped),
            capacity=most,
        )
        reporter.advance(len(shard))
        faults.add(looked_at + len(wanted), skipped)
    work.store(name, place, done=True)


class _Faults:
    """Gives up a source of which too many rows can't be used for their own fault."""

    def __init__(self, source: str, most: float) -> None:
        self._source, self._most = source, most
        self._looked_at = self._faulty = 0
        self._examples: list[str] = []

    def add(self, looked_at: int, skipped: list[Skipped]) -> None:
        bad = [one for one in skipped if one.reason not in ("prompt too long", "too many images")]
        self._looked_at += looked_at
        self._faulty += len(bad)
        self._examples += [f"{one.row}: {one.reason}: {one.what}" for one in bad[: 3 - len(self._examples)]]
        if self._looked_at >= _EARLY and self._faulty > self._most * self._looked_at:
            listing = "".join(f"\n  {example}" for example in self._examples)
            raise UserFault(
                f"{self._faulty} of {self._looked_at} rows can't be used, more than {100 * self._most:g} %{listing}",
                where=f"source {self._source}",
                fix="mend the data or the source's YAML, or raise most_faulty",
            )


def _shards(read: Read, skip: int) -> Iterator[list[MixtureRow | Skipped]]:
    rows = read()
    for _ in islice(rows, skip):  # read before; no picture is decoded for it
        pass
    while shard := list(islice(rows, SHARD)):
        yield shard


__all__ = ["BAD_IMAGE", "Inputs", "Reporter", "Write", "capacity", "prepare"]
