"""Where the rows of a split come from: drawn, out of a parquet file, or out of a benchmark's own data.

The one idea: whichever it is, rows come one at a time and can be read again; nothing but the row at hand is in memory.
A benchmark that is read has one split. Rows on which pairs are chosen are set apart from it: those whose ids rank first
by a hash of seed and id, so that they are spread over all groups, and are the same ones however many rows are run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from pathlib import Path

from eval.benchmarks.copies import find_copy
from eval.benchmarks.embedded.world import generate
from eval.benchmarks.parquet import read_parquet
from eval.benchmarks.reader import Reading, read_items
from eval.benchmarks.row import Row
from eval.benchmarks.spec import Benchmark
from eval.benchmarks.tally import Tally
from eval.config import TEST, VALIDATION, EvalConfig
from experts.images import load_picture
from orchestrator.task import Task
from registry.errors import UserFault

_ENDLESS = 1 << 40  # a generator is told how many rows to draw; who reads it stops earlier


@dataclass(frozen=True, slots=True)
class Entry:
    """One row to be asked. ``groups``: its label in each of the benchmark's groupings. ``shared``: its wording serves
    several families, so that the words alone cannot decide. ``cluster``: the question that it asks together with other
    rows."""

    task: Task
    groups: tuple[tuple[str, str], ...] = ()
    shared: bool = False
    cluster: str | None = None


@dataclass(frozen=True)
class Source:
    """``read`` starts from the first row each time and counts rows that cannot be used. ``most``: how many rows there
    are, as far as known without reading them. ``place``: where they lie, for messages. ``tally``: makes an empty
    one."""

    read: Callable[[Tally], Iterator[Entry]]
    most: Callable[[], int | None]
    place: str | None = None
    tally: Callable[[], Tally] = lambda: Tally("")


def source_of(config: EvalConfig, benchmark: Benchmark | None, split: str) -> Source:
    """Raises UserFault where the split has no rows to come from."""
    file: Path | None = getattr(config.parquet, split)
    if file is not None:
        return Source(lambda _: _parquet(file, split), lambda: _rows_in_parquet(file), str(file))
    if benchmark is None:
        raise UserFault(
            f"nothing says where the rows of {split!r} are", where=f"rows.{split}", fix=f"give parquet.{split}=PATH"
        )
    if benchmark.generator is not None:
        return Source(lambda _: _drawn(split, config.seed), lambda: None)
    return _own_source(config, benchmark, split)


def _own_source(config: EvalConfig, benchmark: Benchmark, split: str) -> Source:
    if split not in (TEST, VALIDATION):
        raise UserFault(
            f"the benchmark {benchmark.name!r} has no split {split!r}",
            where=f"rows.{split}",
            fix=f"leave it out, or give a file: parquet.{split}=PATH",
        )
    apart = config.rows.validation if config.parquet.validation is None and config.parquet.test is None else 0
    if split == VALIDATION and not apart:
        raise UserFault(
            "an arm chooses its pairs on validation rows, and there are none",
            where=f"benchmark {benchmark.name}",
            fix="set rows of the benchmark apart with rows.validation=100, give a file with parquet.validation=PATH, "
            "or leave out best_single_pair, family_pair, oracle and what else is chosen on them",
        )
    chosen: list[frozenset[int]] = []  # looked up once, when the first row is asked for

    def read(tally: Tally) -> Iterator[Entry]:
        if apart and not chosen:
            chosen.append(_set_apart(config, benchmark, apart))
        wanted = split == VALIDATION
        for item in read_items(benchmark, _reading(config), tally):
            if not apart or (_rank(config.seed, item.row.id) in chosen[0]) is wanted:
                yield Entry(item.task(), tuple(item.groups.items()), cluster=item.cluster)

    def most() -> int | None:
        count = _count(benchmark, config.data.root)
        return apart if split == VALIDATION else None if count is None else max(0, count - apart)

    tally = partial(Tally, config.benchmark, config.data.root)
    return Source(read, most, f"benchmark {benchmark.name}", tally)


def _reading(config: EvalConfig) -> Reading:
    data = config.data
    return Reading(
        None if data.root is None else data.root.expanduser(),
        on_fault=data.on_fault,
        most_faulty=data.most_faulty,
        text_only=data.text_only,
        deadline_s=data.deadline_s,
    )


def _set_apart(config: EvalConfig, benchmark: Benchmark, wanted: int) -> frozenset[int]:
    """Ranks of the rows on which pairs are chosen. Pictures are not looked at, so a row with a broken one may be
    among them; it is left out of both splits."""
    reading = Reading(
        None if config.data.root is None else config.data.root.expanduser(),
        most_faulty=1.0,
        text_only=True,
        deadline_s=config.data.deadline_s,
    )
    total = 0

    def ranks() -> Iterator[int]:
        nonlocal total
        for item in read_items(benchmark, reading):
            total += 1
            yield _rank(config.seed, item.row.id)

    found = frozenset(nsmallest(wanted, ranks()))
    if wanted >= total:
        raise UserFault(
            f"{wanted} rows are to be set apart, and the benchmark {benchmark.name!r} has {total}",
            where="rows.validation",
            fix="set fewer apart, or give a file: parquet.validation=PATH",
        )
    return found


def _rank(seed: int, row_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"apart, seed {seed}, {row_id}".encode(), digest_size=8).digest())


def _drawn(split: str, seed: int) -> Iterator[Entry]:
    for row in generate(split, _ENDLESS, seed):
        yield Entry(task_of(row), shared=bool(row.extra.get("shared")))


def _parquet(file: Path, split: str) -> Iterator[Entry]:
    for row in read_parquet(file):
        yield Entry(task_of(row, row_id=f"{split}/{row.id}"), shared=bool(row.extra.get("shared")))


def task_of(row: Row, *, row_id: str | None = None) -> Task:
    """A row as a task; its pictures are normalised here. Raises ImageFault naming the row."""
    return Task(
        row_id=row.id if row_id is None else row_id,
        benchmark=row.benchmark,
        group=row.group,
        question=row.question,
        pictures=tuple(load_picture(data, where=f"row {row.id}") for data in row.pictures),
        ground_truth=tuple(row.extra["answers"]) if "answers" in row.extra else row.answer,
        choices=row.choices,
    )


def _count(benchmark: Benchmark, root: Path | None) -> int | None:
    """Rows of a local copy where counting is quick, else as the benchmark's YAML says."""
    if root is None:
        return benchmark.rows
    copy = find_copy(benchmark, root.expanduser())
    if copy.kind == "parquet":
        counts = [_rows_in_parquet(file) for file in copy.files]
        return None if None in counts else sum(count for count in counts if count is not None)
    if copy.kind != "lines":
        return None
    lines = 0
    for file in copy.files:
        with file.open("rb") as stream:
            lines += sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
    return lines


def _rows_in_parquet(file: Path) -> int | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(file).num_rows
    except (OSError, pa.ArrowException):
        return None  # reading it tells why
