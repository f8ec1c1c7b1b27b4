"""A row on its way into the mixture, and why a row is not taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class MixtureRow:
    """One row, named as verl's columns need it. benchmark: whose rule scores it. pictures: encoded bytes."""

    id: str
    benchmark: str
    question: str
    pictures: tuple[bytes, ...] = field(repr=False)
    answer: str
    choices: tuple[str, ...] | None
    group: str
    split: str
    extra: Mapping[str, Any]


@dataclass(frozen=True)
class Skipped:
    """A row that is not taken. reason: groups those of a kind ("bad image")."""

    reason: str
    what: str
    row: str
    """Its id; where the data says none, its place."""


Read = Callable[[], Iterator[MixtureRow | Skipped]]
"""Opens a data set; the same rows in the same order at every call. Raises UserFault where it can't be had."""
