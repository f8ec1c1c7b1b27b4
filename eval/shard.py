"""One part of an evaluation's rows, for several machines.

The one idea: shard i of n takes rows i, i + n, i + 2n, ... of every test split, in the rows' own order, so that the
parts are known beforehand, never overlap, and together are all rows. Validation rows belong to every shard: each
measures the same matrix, so that the best pairs are the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from registry.errors import UserFault

Row = TypeVar("Row")
MOST = 10_000


@dataclass(frozen=True, order=True)
class Shard:
    """Part ``index`` (from 1) of ``count``; prints as "2/4"."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def folder_suffix(self) -> str:
        return f"-shard-{self.index}-of-{self.count}"

    def take(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows of this shard, drawn as they are needed."""
        return islice(rows, self.index - 1, None, self.count)

    def holds(self, position: int) -> bool:
        """Whether the row at this position (from 0) is one of this shard's."""
        return position % self.count == self.index - 1


def parse_shard(text: str) -> Shard:
    """Read "2/4". Raises UserFault for anything else, and for a part that does not exist."""
    found = re.fullmatch(r"\s*([0-9]{1,6})\s*/\s*([0-9]{1,6})\s*", text)
    index, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= index <= count <= MOST:
        raise UserFault(f"not a shard: {text!r}", where="--shard", fix="write part/parts, from 1/4 to 4/4")
    return Shard(index, count)
