"""Records out of a local copy's files, one at a time: JSON lines, JSON lists, tables, parquet, saved data sets.

Nothing is held but the record at hand and the read-ahead of its reader; only a `.json` list is read whole, since
JSON has no other way, and so is bounded in size.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eval.benchmarks.copies import Copy
from registry.errors import UserFault

MAX_LINE_BYTES = 256 * 1024 * 1024
"""One record: sixteen pictures of 8K as base64 stay below."""
MAX_LIST_BYTES = 512 * 1024 * 1024
_BATCH = 8  # parquet rows in memory at once: a row may hold 10 MB of picture


def read_copy(copy: Copy) -> Iterator[tuple[dict[str, Any], str]]:
    """Records and where each stands ("FILE: row 17"). Raises UserFault for a file that can't be read, naming
    file and line."""
    for file in copy.files:
        try:
            for place, record in _READERS[copy.kind](file):
                yield record, f"{file}: {place}"
        except OSError as fault:
            raise UserFault(f"can't be read: {fault.strerror or fault}", where=str(file)) from fault


def _lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with file.open("rb") as stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise UserFault(f"line longer than {MAX_LINE_BYTES} bytes", where=f"{file}:{number}")
            if line.strip():
                yield f"line {number}", _object(line, f"{file}:{number}")


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as fault:
        raise UserFault(f"not JSON: {fault}", where=where, fix="each line holds one JSON object") from None
    if not isinstance(record, dict):
        raise UserFault(f"a JSON {type(record).__name__}, not an object", where=where)
    return record


def _json(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    size = file.stat().st_size
    if size > MAX_LIST_BYTES:
        raise UserFault(f"{size} bytes in one JSON list", where=str(file), fix="turn it into JSON lines")
    try:
        found = json.loads(file.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        yield from _lines(file)  # one object a line under the wrong ending
        return
    if isinstance(found, dict):  # {"data": [...]}, or one record by id
        lists = [value for value in found.values() if isinstance(value, list)]
        found = lists[0] if len(lists) == 1 and len(found) <= 3 else list(found.values())
    for number, record in enumerate(found, 1):
        if not isinstance(record, dict):
            raise UserFault(f"entry {number} is no object", where=str(file), fix="give a list of objects")
        yield f"entry {number}", record


def _table(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    before = csv.field_size_limit(MAX_LINE_BYTES)
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream, delimiter="\t" if file.suffix == ".tsv" else ",")
            for number, record in enumerate(reader, 1):
                if None in record:
                    raise UserFault("more cells than columns", where=f"{file}: row {number}")
                yield f"row {number}", record
    except (csv.Error, UnicodeDecodeError) as fault:
        raise UserFault(f"no readable table: {fault}", where=str(file)) from None
    finally:
        csv.field_size_limit(before)


def _parquet(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Without the stream a whole row group would be read at once: gigabytes, where rows are 8K pictures.
        with pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as table:
            number = 0
            for batch in table.iter_batches(batch_size=_BATCH):
                for record in batch.to_pylist():
                    number += 1
                    yield f"row {number}", record
    except pa.ArrowException as fault:
        raise UserFault(f"no readable parquet file: {fault}", where=str(file)) from None


def _saved(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    from datasets import Dataset, load_from_disk

    try:
        found = load_from_disk(str(folder))
    except (ValueError, TypeError) as fault:
        raise UserFault(f"no data set written by `datasets`: {fault}", where=str(folder)) from None
    if not isinstance(found, Dataset):
        raise UserFault(
            f"several splits: {', '.join(map(str, found))}", where=str(folder), fix="give the folder of one"
        )
    for number, record in enumerate(undecoded(found), 1):
        yield f"row {number}", dict(record)


def undecoded(data: Any) -> Any:
    """A data set of `datasets` whose pictures stay encoded bytes, at any depth of its features."""
    from datasets import Features, Image

    def keep(feature: Any) -> Any:
        if isinstance(feature, Image):
            return Image(decode=False)
        if isinstance(feature, dict):
            return {name: keep(inner) for name, inner in feature.items()}
        if isinstance(feature, list):
            return [keep(inner) for inner in feature]
        inner = getattr(feature, "feature", None)
        return type(feature)(keep(inner)) if inner is not None else feature

    if data.features is None:
        return data
    return data.cast(Features({name: keep(feature) for name, feature in data.features.items()}))


_READERS: dict[str, Callable[[Path], Iterator[tuple[str, dict[str, Any]]]]] = {
    "lines": _lines,
    "json": _json,
    "table": _table,
    "parquet": _parquet,
    "saved": _saved,
}
