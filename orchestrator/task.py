"""One thing to solve: a question about pictures.

The one idea: what a benchmark row, a parquet row or a command line gives is brought into this one shape
before an episode starts. `ground_truth` and `group` are carried for the record; no policy may read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experts.images import Picture


@dataclass(frozen=True)
class Task:
    """question: plain text without placeholders. choices: option texts in order, None where the question is
    open.
    ground_truth: the gold answer, or several accepted ones; None where unknown."""

    row_id: str
    benchmark: str
    group: str
    question: str
    pictures: tuple[Picture, ...]
    ground_truth: str | Sequence[str] | None = None
    choices: tuple[str, ...] | None = None
