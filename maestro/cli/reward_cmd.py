"""`maestro reward`: the reward of one trajectory record, and why.

    maestro reward --trajectory runs/demo/trajectories.jsonl --line 3 --json

The file holds one JSON object, or one on each line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from maestro.cli.plain_text import plain
from registry.errors import UserFault

MAX_BYTES = 1 << 26  # of one record: a long episode with its token ids is a megabyte


def reward(
    trajectory: Annotated[
        Path, typer.Option("--trajectory", "-t", help="A trajectory record: JSON or JSON lines.")
    ],
    line: Annotated[int, typer.Option("--line", min=1, help="Which record of the file, from 1.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """The reward of a trajectory: answer, format, total, and whether the episode counts at all."""
    import rewards

    record = read_record(trajectory, line)
    try:
        result = rewards.reward(record)
    except ValueError as error:
        raise UserFault(str(error), where=f"{trajectory}, record {line}") from None
    if as_json:
        content = {
            "answer": result.answer,
            "format": result.format if result.valid else None,
            "total": result.total,
            "valid": result.valid,
            "explanation": result.explanation,
            "prediction": result.prediction,
            "counts": result.counts,
        }
        print(json.dumps(content, ensure_ascii=False))
        return
    total = "none" if result.total is None else f"{result.total:g}"
    print(plain(f"total {total}  {result.explanation}"))


def read_record(path: Path, number: int) -> dict[str, Any]:
    """Record `number` (from 1) of a file with one JSON object, or one on each line. Raises UserFault."""
    place = f"{path}, record {number}"
    with path.open("rb") as file:
        lines = (text for text in _lines(file, place) if text.strip())
        wanted = next((text for index, text in enumerate(lines, 1) if index == number), None)
    record = _object(wanted, path) if wanted is not None else None
    if record is None and number == 1 and wanted is not None and path.stat().st_size <= MAX_BYTES:
        record = _object(path.read_bytes(), path)  # one object over several lines
    if record is None:
        problem = "there is no such record" if wanted is None else "the record is not a JSON object"
        raise UserFault(problem, where=place, fix="give a file of trajectory records")
    return record


def _lines(file: BinaryIO, place: str) -> Iterator[bytes]:
    while line := file.readline(MAX_BYTES + 1):
        if len(line) > MAX_BYTES:
            what = f"a line of more than {MAX_BYTES} bytes is no record"
            raise UserFault(what, where=place, fix="give a file of trajectory records")
        yield line


def _object(text: bytes, path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise UserFault("the file is not UTF-8 text", where=str(path)) from None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
