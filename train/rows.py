"""Training rows (verl's RL parquet) as tasks.

One idea: what verl's loader hands to the agent loop and what the cold start reads from the file become the same `Task`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experts.images import load_pictures
from orchestrator.task import Task
from registry.errors import UserFault


def task_from_row(row: Mapping[str, Any], images: Any, where: str) -> Task:
    """The task of one row; `images` in any of the shapes that parquet files hold. Raises ImageFault, UserFault."""
    extra = row.get("extra_info") or {}
    question = extra.get("question")
    if not isinstance(question, str):
        raise UserFault("extra_info holds no question", where=where, fix="write rows with extra_info.question")
    model = row.get("reward_model") or {}
    truth = model.get("ground_truth")
    choices = extra.get("choices")
    return Task(
        row_id=str(extra.get("id") or f"{row.get('data_source')}-{extra.get('split')}-{extra.get('index')}"),
        benchmark=str(row.get("data_source")),
        group=str(extra.get("family") or row.get("ability") or ""),
        question=question.replace("<image>", "").strip(),
        pictures=load_pictures(images, where=where),
        ground_truth=truth if isinstance(truth, str) else tuple(str(t) for t in truth) if truth is not None else None,
        choices=tuple(choices) if choices is not None and len(choices) else None,
    )


def read_rows(path: Path) -> Iterator[tuple[Task, str | None]]:
    """(task, caption) of every row, streamed; the caption is what the benchmark says of the picture, if anything.

    Raises UserFault where the file is no readable parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise UserFault(f"cannot read the rows: {error}", where=str(path), fix="write the file again") from error
    number = 0
    for batch in file.iter_batches(batch_size=64):
        for row in batch.to_pylist():
            extra = json.loads((row.get("extra_info") or {}).get("extra") or "{}")
            yield task_from_row(row, row.get("images"), f"{path}, row {number}"), extra.get("caption")
            number += 1


def image_bytes(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The encoded images inside verl's `raw_prompt` messages, in order."""
    found: list[Any] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            continue
        for part in content or ():
            if part.get("type") == "image":
                found.append(part.get("bytes") or part.get("image") or part.get("path"))
    return found
