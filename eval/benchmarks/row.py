"""One question of a benchmark: what every loader and generator yields, and everything else reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """A question about pictures with its right answer.

    `pictures` are encoded image files (PNG for generated rows), in the order in which the question speaks of
    them. `group` is the family or task within the benchmark, `choices` the options of a multiple-choice
    question, and `extra` what only this benchmark knows of the row.
    """

    id: str
    benchmark: str
    question: str
    pictures: tuple[bytes, ...]
    answer: str
    choices: tuple[str, ...] | None = None
    group: str = ""
    split: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
