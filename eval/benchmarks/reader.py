"""Rows of a benchmark, streamed: from the hub, from a local copy, or drawn.

The one idea: every row comes out as an `Item` or as the `RowFault` that keeps it from being one. Faulty rows are
skipped and counted, or end the reading: never dropped in silence. One row at a time is in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eval.benchmarks.copies import find_copy
from eval.benchmarks.embedded.world import generate
from eval.benchmarks.fields import Record, check_columns
from eval.benchmarks.hub import DEADLINE_S, fetch_file, read_hub
from eval.benchmarks.item import Item, item_of
from eval.benchmarks.pictures import Pictures
from eval.benchmarks.records import read_copy
from eval.benchmarks.spec import Benchmark
from eval.benchmarks.tally import OnFault, RowFault, Tally
from experts.images import load_picture


@dataclass(frozen=True)
class Reading:
    """How rows are read. data_root: a local copy; the hub when None. most_faulty: share of faulty rows above which
    reading is given up under `skip`. text_only: rows are read without their pictures. deadline_s: for the hub.
    pictures: reads those of a row; another class may leave them encoded."""

    data_root: Path | None = None
    limit: int | None = None
    on_fault: OnFault = "skip"
    most_faulty: float = 0.05
    text_only: bool = False
    deadline_s: float = DEADLINE_S
    pictures: type[Pictures] = Pictures


def read_items(benchmark: Benchmark, reading: Reading, tally: Tally | None = None) -> Iterator[Item]:
    """The benchmark's rows in order, at most `limit` of the good ones.

    Raises UserFault: no data, a column is missing, too many faulty rows; under `fail` the first RowFault.
    """
    tally = Tally(benchmark.name) if tally is None else tally
    limit = benchmark.rows if benchmark.generator and reading.limit is None else reading.limit
    given = 0
    for found in outcomes(benchmark, reading, tally):
        if isinstance(found, Item):
            yield found
            given += 1
            if limit is not None and given >= limit:
                return
        elif reading.on_fault == "fail":
            raise found
        else:
            tally.check(reading.most_faulty, finished=False)
    tally.check(reading.most_faulty, finished=True)


def outcomes(benchmark: Benchmark, reading: Reading, tally: Tally) -> Iterator[Item | RowFault]:
    """Every row as an item or as the fault that keeps it from being one, counted in `tally`; nothing is given up."""
    if benchmark.generator is not None:
        yield from _drawn(benchmark, reading, tally)
        return
    seen: set[int] = set()
    records, pictures = _open(benchmark, reading)
    try:
        for number, (record, where) in enumerate(records):
            if number == 0:
                _check_columns(benchmark, record, where, reading.text_only)
            tally.seen += 1
            try:
                item = item_of(benchmark, record, number, where, None if reading.text_only else pictures)
                if item is None:
                    tally.left_out += 1
                    continue
                key = int.from_bytes(hashlib.blake2b(item.row.id.encode(), digest_size=8).digest())
                if key in seen:
                    raise RowFault(
                        "duplicate id",
                        repr(item.row.id),
                        where=where,
                        fix="name a unique column as 'id', or leave it out",
                    )
                seen.add(key)
            except RowFault as fault:
                tally.note(fault)
                yield fault
            else:
                tally.kept += 1
                yield item
    finally:
        pictures.close()
        records.close()


def _open(benchmark: Benchmark, reading: Reading) -> tuple[Any, Pictures]:
    if reading.data_root is None:
        hub, archive = benchmark.hub, benchmark.images.archive
        fetch = partial(fetch_file, hub, archive) if hub is not None and archive is not None else None
        return read_hub(benchmark, deadline_s=reading.deadline_s), reading.pictures(benchmark.images, None, fetch)
    copy = find_copy(benchmark, reading.data_root)
    return read_copy(copy), reading.pictures(benchmark.images, copy.folder)


def _drawn(benchmark: Benchmark, reading: Reading, tally: Tally) -> Iterator[Item]:
    generator = benchmark.generator
    assert generator is not None
    wanted = (benchmark.rows or 0) if reading.limit is None else reading.limit
    for row in generate(generator.split, wanted, generator.seed):
        tally.seen += 1
        tally.kept += 1
        pictures = () if reading.text_only else tuple(load_picture(png, where=f"row {row.id}") for png in row.pictures)
        yield Item(row, pictures, MappingProxyType({"family": row.group}))


def _check_columns(benchmark: Benchmark, record: Record, where: str, text_only: bool) -> None:
    check_columns(record, "question", benchmark.question, where)
    check_columns(record, "answer", benchmark.answer.columns, where)
    if not text_only:
        check_columns(record, "images", benchmark.images.columns, where)
    if benchmark.question_key is not None and benchmark.question_key.columns:
        check_columns(record, "question's key", benchmark.question_key.columns, where)
    choices = benchmark.choices
    if choices is not None and not (choices.optional or choices.lettered):
        check_columns(record, "options", (*choices.columns, *choices.each[:1]), where)
