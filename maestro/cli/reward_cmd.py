"""`maestro reward`: the reward of one trajectory record, and why.

    maestro reward --trajectory runs/demo/trajectories.jsonl --line 3 --json

The file holds one JSON object, or one on each line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from registry.errors import UserFault


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
    print(f"total {total}  {result.explanation}")


def read_record(path: Path, number: int) -> dict[str, Any]:
    """Record `number` (from 1) of a file with one JSON object, or one on each line. Raises UserFault."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = (text for text in file if text.strip())
            wanted = next((text for index, text in enumerate(lines, 1) if index == number), None)
    except UnicodeDecodeError:
        raise UserFault("the file is not UTF-8 text", where=str(path)) from None
    record = _object(wanted) if wanted is not None else None
    if record is None and number == 1:
        record = _object(path.read_text(encoding="utf-8-sig"))  # one object over several lines
    if record is None:
        problem = "there is no such record" if wanted is None else "the record is not a JSON object"
        raise UserFault(problem, where=f"{path}, record {number}", fix="give a file of trajectory records")
    return record


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
