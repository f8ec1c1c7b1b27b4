"""Training rows (verl's RL parquet) as tasks.

One idea: what verl's loader hands to the agent loop and what the cold start reads from the file become the same `Task`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experts.images import load_pictures
from orchestrator.task import Task
from registry.errors import UserFault


def task_from_row(row: Mapping[str, Any], images: Any, where: str, roots: Sequence[Path] = ()) -> Task:
    """The task of one row; `images` in any of the shapes that parquet files hold.

    roots: folders that paths of images are looked for in, and may not leave. Raises ImageFault, UserFault.
    """
    extra = row.get("extra_info") or {}
    name = next((extra[key] for key in ("id", "index") if extra.get(key) is not None), None)
    if name is None:  # groups and seeds hang on it: rows with equal texts must stay apart
        raise UserFault("extra_info holds neither id nor index", where=where, fix="number the rows in extra_info.index")
    question = extra.get("question")
    if not isinstance(question, str):
        raise UserFault("extra_info holds no question", where=where, fix="write rows with extra_info.question")
    model = row.get("reward_model") or {}
    choices = extra.get("choices")
    return Task(
        row_id=str(name) if extra.get("id") is not None else f"{row.get('data_source')}-{extra.get('split')}-{name}",
        benchmark=str(row.get("data_source")),
        group=str(extra.get("family") or row.get("ability") or ""),
        question=question.replace("<image>", "").strip(),
        pictures=load_pictures(images, roots=roots, where=where),
        ground_truth=_truth(model.get("ground_truth")),
        choices=tuple(choices) if choices is not None and len(choices) else None,
    )


def _truth(value: Any) -> str | tuple[str, ...] | None:
    if value is None or isinstance(value, str):
        return value
    return tuple(str(one) for one in value) if isinstance(value, Iterable) else str(value)


def _caption(extra: Any) -> str | None:
    """The caption inside a row's further fields, a JSON object as text; other benchmarks keep other things there."""
    try:
        fields = json.loads(extra) if isinstance(extra, str) else extra
    except ValueError:
        return None
    caption = fields.get("caption") if isinstance(fields, dict) else None
    return caption if isinstance(caption, str) else None


def read_rows(path: Path) -> Iterator[tuple[Task, str | None]]:
    """(task, caption) of every row, streamed; the caption is what the benchmark says of the picture, if anything.

    Raises UserFault where the file is no readable parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def batches() -> Iterator[list[dict[str, Any]]]:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=64):
                    yield batch.to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise UserFault(f"cannot read the rows: {error}", where=str(path), fix="write the file again") from error

    number = 0
    for batch in batches():
        for row in batch:
            task = task_from_row(row, row.get("images"), f"{path}, row {number}", (path.resolve().parent,))
            yield task, _caption((row.get("extra_info") or {}).get("extra"))
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
