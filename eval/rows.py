"""Rows of a benchmark as tasks.

The one idea: whether a row was drawn a moment ago or comes from a parquet file, an evaluation sees the same
thing, and no two rows share an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from eval.benchmarks.embedded.world import generate
from eval.benchmarks.parquet import read_parquet
from eval.benchmarks.row import Row
from eval.config import TEST, UNSEEN, VALIDATION, EvalConfig
from eval.phases import StartPhase
from eval.shard import Shard
from experts.images import load_picture
from orchestrator.task import Task
from registry.errors import UserFault


@dataclass(frozen=True)
class Rows:
    """The tasks of one split."""

    split: str
    tasks: tuple[Task, ...]
    shared: frozenset[str]
    """Ids of rows whose wording serves several families, so that the words alone cannot decide."""


def load_splits(
    config: EvalConfig, limit: int | None, start_phase: StartPhase, shard: Shard | None = None
) -> list[Rows]:
    """The splits that an evaluation needs: test, unseen wordings if asked for, validation if pairs are chosen. A
    shard has all validation rows and its own part of the others."""
    unseen = [UNSEEN] if config.rows.test_unseen else []
    names = [TEST, *unseen, *([VALIDATION] if config.needs_matrix else [])]
    advance = start_phase("rows", len(names))
    splits = []
    for name in names:
        splits.append(load_rows(config, name, limit, shard if name != VALIDATION else None))
        advance()
    return splits


def load_rows(config: EvalConfig, split: str, limit: int | None = None, shard: Shard | None = None) -> Rows:
    """The rows of a split, at most ``limit`` (the first ones: a larger limit later adds to them); of those, the
    shard's.

    Raises:
        UserFault: the benchmark has no generator and no file is given, a file is broken, or an id is used
            twice.
    """
    wanted = getattr(config.rows, split)
    wanted = wanted if limit is None else min(wanted, limit)
    file: Path | None = getattr(config.parquet, split)
    rows = islice(_rows(config, split, wanted, file), wanted)
    found = list(rows if shard is None else shard.take(rows))
    tasks = tuple(task_of(row, row_id=f"{split}/{row.id}" if file else row.id) for row in found)
    if not tasks and shard is None:
        raise UserFault(f"the split {split!r} holds no rows", where=None if file is None else str(file))
    _check_ids(tasks, file)
    shared = {task.row_id for task, row in zip(tasks, found, strict=True) if row.extra.get("shared")}
    return Rows(split, tasks, frozenset(shared))


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


def _rows(config: EvalConfig, split: str, wanted: int, file: Path | None) -> Iterator[Row]:
    if file is not None:
        return read_parquet(file)
    if config.benchmark != "embedded":
        raise UserFault(
            f"benchmark {config.benchmark!r} has no generator",
            where=f"rows.{split}",
            fix=f"give a file: parquet.{split}=PATH",
        )
    return generate(split, wanted, config.seed)


def _check_ids(tasks: Iterable[Task], file: Path | None) -> None:
    seen: set[str] = set()
    for task in tasks:
        if task.row_id in seen:
            raise UserFault(
                f"two rows have the id {task.row_id!r}",
                where=None if file is None else str(file),
                fix="give each row an id",
            )
        seen.add(task.row_id)
