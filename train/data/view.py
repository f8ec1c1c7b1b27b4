"""Rows of verl parquet files as they will be seen: the text of the policy, picture sizes, token counts.

The one idea: a row is shown through the same reader that training uses, so what can't be trained on can't be shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.prompt import question_text
from orchestrator.task import Task
from registry.errors import UserFault
from train.data.lengths import Length, PromptLengths
from train.data.row import MixtureRow
from train.rows import task_from_row

NEEDED = ("data_source", "prompt", "images", "reward_model", "extra_info")


@dataclass(frozen=True)
class Shown:
    """One row. stored_bytes: of each picture in the file. length: measured now; `tokens` is what was written."""

    number: int
    split: str
    task: Task
    asked: str
    system: str | None
    stored_bytes: tuple[int, ...]
    tokens: dict[str, Any] | None
    length: Length | None


def show_rows(path: Path, *, first: int = 0, limit: int = 3, lengths: PromptLengths | None = None) -> Iterator[Shown]:
    """Rows `first`, `first + 1`, ... of a file. Raises UserFault: no parquet, other columns, a row that training
    could not read."""
    for number, record in _records(path, first, limit):
        where = f"{path}, row {number}"
        images = record.get("images")
        task = task_from_row(record, images, where, (path.resolve().parent,))
        extra = record.get("extra_info") or {}
        yield Shown(
            number,
            str(extra.get("split") or ""),
            task,
            question_text(task),
            _system(record.get("prompt")),
            tuple(len(cell.get("bytes") or b"") for cell in images or () if isinstance(cell, dict)),
            _written(extra.get("extra")),
            None if lengths is None else lengths.measure(_row(task), [(p.width, p.height) for p in task.pictures]),
        )


def count_rows(path: Path) -> int:
    """Raises UserFault for no parquet, or other columns than verl's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names, rows = set(file.schema_arrow.names), file.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        raise UserFault(f"cannot read a parquet file: {error}", where=str(path), fix="check the path") from error
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise UserFault(
            f"no column {', '.join(missing)}; the file has {', '.join(sorted(names)) or 'none'}",
            where=str(path),
            fix="training reads verl's columns; `maestro data prepare` writes them",
        )
    return rows


def _records(path: Path, first: int, limit: int) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow.parquet as pq

    count_rows(path)
    number = 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if number + rows <= first:
                number += rows
                continue
            for batch in file.iter_batches(batch_size=16, row_groups=[group]):
                for record in batch.to_pylist():
                    if number >= first + limit:
                        return
                    if number >= first:
                        yield number, record
                    number += 1


def _system(prompt: Any) -> str | None:
    messages = prompt if isinstance(prompt, list) else []
    return next((str(m.get("content")) for m in messages if m.get("role") == "system"), None)


def _written(extra: Any) -> dict[str, Any] | None:
    try:
        found = json.loads(extra) if isinstance(extra, str) else extra
    except ValueError:
        return None
    tokens = found.get("tokens") if isinstance(found, dict) else None
    return tokens if isinstance(tokens, dict) else None


def _row(task: Task) -> MixtureRow:
    return MixtureRow(task.row_id, task.benchmark, task.question, (), "", task.choices, task.group, "", {})
