"""Rows to and from parquet files in verl's format for RL, so one file feeds training and evaluation.

The one idea: columns are those of the published training files (`data_source, prompt, images, ability,
reward_model, extra_info`). Files written here come back as the same rows; files of others are read as far as
they say what a row needs, and a row that cannot be read is named, never dropped in silence.
"""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.benchmarks.row import Row
from experts.images import load_pictures
from registry.errors import UserFault

if TYPE_CHECKING:
    import pyarrow

_PLACEHOLDER = "<image>"
_PICTURES = "images.list.element.bytes"
_GROUP = 256  # rows held in memory at once, on either side
_log = logging.getLogger(__name__)


def write_parquet(rows: Iterable[Row], path: Path | str, *, system_prompt: str | None) -> int:
    """Write rows as they come and return how many; the file appears under its name only when it is complete.

    The user message is one `<image>` a picture and the question. Raises UserFault when the file cannot be
    written, and ValueError for a question that holds `<image>`: it would ask for a picture that is not there.
    """
    import pyarrow.parquet as pq

    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    schema, count, stream = _schema(), 0, iter(rows)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(partial, schema, **_storage(schema)) as writer:
            while group := list(islice(stream, _GROUP)):
                records = [_record(row, count + place, system_prompt) for place, row in enumerate(group)]
                writer.write_table(_table(records, schema))
                count += len(group)
        os.replace(partial, path)
    except OSError as fault:
        raise UserFault(f"cannot write {path}: {fault}", fix="free some space or choose another folder") from fault
    finally:
        with suppress(OSError):  # gone already, or never made
            partial.unlink()
    return count


def read_parquet(path: Path | str, *, roots: Sequence[Path] | None = None, broken_share: float = 0.0) -> Iterator[Row]:
    """The rows of a file in order, a few hundred in memory at a time.

    roots: folders that image paths may reach, in order of preference; the file's own folder when None.
    broken_share: share of the file's rows that may be skipped (each with a warning) before reading is given
    up; by default the first one that cannot be read ends it. Raises UserFault naming file and row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    folders = (path.parent,) if roots is None else tuple(roots)
    skipped = 0
    try:
        with pq.ParquetFile(path) as file:
            total = file.metadata.num_rows
            number = 0
            for batch in file.iter_batches(batch_size=_GROUP):
                for record in batch.to_pylist():
                    try:
                        row = row_from_record(record, number, roots=folders, where=f"{path}: row {number}")
                    except UserFault as fault:
                        skipped += 1
                        if skipped > broken_share * total:
                            raise
                        _log.warning("skipped %d of %d rows: %s", skipped, total, fault)
                    else:
                        yield row
                    number += 1
    except (OSError, pa.ArrowException) as fault:
        raise UserFault(
            f"cannot read a parquet file: {fault}",
            where=str(path),
            fix="check the path, or make the file anew",
        ) from fault


def row_from_record(record: Mapping[str, Any], number: int, *, roots: Sequence[Path], where: str) -> Row:
    """One record, from pyarrow, pandas or `datasets`, as a row; `number` stands in for a missing id."""
    extra_info = _mapping(record, "extra_info", where)
    reward_model = _mapping(record, "reward_model", where)
    answers = _texts(_first(reward_model.get("ground_truth"), extra_info.get("answer")))
    if not answers:
        raise UserFault("no answer", where=where, fix="give reward_model.ground_truth or extra_info.answer")
    prompt = _user_text(record.get("prompt"))
    question = str(_first(extra_info.get("question"), prompt))
    if not question:
        raise UserFault("no question", where=where, fix="give extra_info.question or a user message in prompt")
    pictures = load_pictures(_first(record.get("images"), record.get("image"), ()), roots=roots, where=where)
    asked = max(prompt.count(_PLACEHOLDER), question.count(_PLACEHOLDER))
    if asked > len(pictures):
        raise UserFault(
            f"the question asks for {asked} image(s), the row has {len(pictures)}",
            where=where,
            fix="keep one <image> in the text for each entry of the column images",
        )
    extra = _extra(extra_info.get("extra"), where)
    if len(answers) > 1:
        extra["answers"] = answers
    choices = _texts(extra_info.get("choices"))
    return Row(
        id=str(_first(extra_info.get("id"), extra_info.get("index"), number)),
        benchmark=str(_first(record.get("data_source"), "")),
        question=question.replace(_PLACEHOLDER, "").strip(),
        pictures=tuple(picture.png for picture in pictures),
        answer=answers[0],
        choices=tuple(choices) or None,
        group=str(_first(extra_info.get("family"), record.get("ability"), "")),
        split=str(_first(extra_info.get("split"), "")),
        extra=extra,
    )


def _record(row: Row, index: int, system_prompt: str | None) -> dict[str, Any]:
    if _PLACEHOLDER in row.question:
        raise ValueError(f"row {row.id}: the question holds {_PLACEHOLDER}, which stands for a picture")
    user = {"role": "user", "content": _PLACEHOLDER * len(row.pictures) + row.question}
    system = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
    return {
        "data_source": row.benchmark,
        "prompt": [*system, user],
        "images": [{"bytes": data, "path": None} for data in row.pictures],
        "ability": row.group,
        "reward_model": {"style": "rule", "ground_truth": row.answer},
        "extra_info": {
            "index": index,
            "id": row.id,
            "question": row.question,
            "answer": row.answer,
            "split": row.split,
            "family": row.group,
            "choices": None if row.choices is None else list(row.choices),
            "extra": json.dumps(dict(row.extra), ensure_ascii=False, sort_keys=True),
        },
    }


def _schema() -> pyarrow.Schema:
    import pyarrow as pa

    text = pa.string()
    return pa.schema(
        {
            "data_source": text,
            "prompt": pa.list_(pa.struct({"role": text, "content": text})),
            "images": pa.list_(pa.struct({"bytes": pa.binary(), "path": text})),
            "ability": text,
            "reward_model": pa.struct({"style": text, "ground_truth": text}),
            "extra_info": pa.struct(
                {
                    "index": pa.int64(),
                    "id": text,
                    "question": text,
                    "answer": text,
                    "split": text,
                    "family": text,
                    "choices": pa.list_(text),
                    "extra": text,
                }
            ),
        }
    )


def _storage(schema: pyarrow.Schema) -> dict[str, Any]:
    """Pictures are compressed and all different: packing, counting and comparing them once more only takes time."""
    import pyarrow.parquet as pq

    empty = io.BytesIO()
    pq.write_table(schema.empty_table(), empty)
    described = pq.ParquetFile(empty).schema
    paths = [described.column(place).path for place in range(len(described.names))]
    others = [path for path in paths if path != _PICTURES]
    compression = {path: "NONE" if path == _PICTURES else "SNAPPY" for path in paths}
    return {"compression": compression, "use_dictionary": others, "write_statistics": others}


def _table(records: Sequence[dict[str, Any]], schema: pyarrow.Schema) -> pyarrow.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(list(records), schema=schema)


def _mapping(record: Mapping[str, Any], column: str, where: str) -> Mapping[str, Any]:
    value = record.get(column)
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise UserFault(f"column {column} holds {type(value).__name__}, not a record", where=where)


def _first(*values: Any) -> Any:
    """The first value that is there; "" when none is."""
    return next((value for value in values if not (value is None or (isinstance(value, str) and not value))), "")


def _texts(value: Any) -> list[str]:
    """One text or a list (or array) of texts, as a list."""
    if value is None or isinstance(value, str | int | float):
        return [] if value in (None, "") else [str(value)]
    return [str(item) for item in value]


def _user_text(prompt: Any) -> str:
    """The text of the last user message of a chat prompt, or the prompt itself if it is plain text."""
    if isinstance(prompt, str):
        return prompt
    messages = [] if prompt is None else list(prompt)
    users = [str(message.get("content") or "") for message in messages if message.get("role") == "user"]
    return users[-1] if users else ""


def _extra(text: Any, where: str) -> dict[str, Any]:
    try:
        extra = json.loads(text) if text else {}
    except (TypeError, ValueError):
        extra = None
    if not isinstance(extra, dict):
        raise UserFault("extra_info.extra is not a JSON object", where=where)
    return extra
