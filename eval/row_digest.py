"""A short digest of what a row asks, by which a resumed run notices that its data has changed.

The one idea: every line of the journal carries the digest of its row, so rows are compared one by one as they are read
anyway; nothing is read beforehand and nothing more is kept in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.task import Task
from registry.errors import UserFault

KEY = "rows_digest"
_FIX = "put the data back to go on, or start afresh in another folder with --run"


def row_digest(task: Task) -> str:
    """16 hex digits of its id, question, options and right answers; pictures are not looked at."""
    gold = task.ground_truth if isinstance(task.ground_truth, str | None) else list(task.ground_truth)
    choices = None if task.choices is None else list(task.choices)
    text = json.dumps([task.row_id, task.question, choices, gold])
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def rows_digest(tasks: Iterable[Task]) -> str:
    """Of all of them, in order."""
    whole = hashlib.blake2b(digest_size=8)
    for task in tasks:
        whole.update(row_digest(task).encode("ascii"))
    return whole.hexdigest()


def changed_row(row_id: str, where: Path) -> UserFault:
    """What a run is told whose data is not what it was."""
    return UserFault(
        f"the data has changed since this run was started: row {row_id!r} has another question, other options or"
        " another right answer now",
        where=str(where),
        fix=_FIX,
    )


def check_measured(saved: Mapping[str, Any], digest: str, where: Path) -> None:
    """Raises UserFault where `saved` was measured on other validation rows; what does not say on which is taken."""
    if saved.get(KEY) not in (None, digest):
        raise UserFault(
            "the data has changed since this run was started: the validation rows are not those that were measured",
            where=str(where),
            fix=_FIX,
        )
