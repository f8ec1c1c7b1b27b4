"""The facts of many trajectories in little memory.

The one idea: of 28 values most are the same few texts, or small numbers. Texts that many trajectories share are kept
once and named by number; what remains of a trajectory is one short byte string, and its ``Facts`` are made anew when
someone asks.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from eval.facts import Facts, Key

_KEY = ("arm", "row_id", "sample")
_SHARED = frozenset({"split", "group", "error", "failure", "stop", "pairs", "groups", "judged"})
_REST = tuple(field.name for field in fields(Facts) if field.name not in _KEY)
_PLACES = tuple(place for place, name in enumerate(_REST) if name in _SHARED)


class FactsTable(Mapping[Key, Facts]):
    """(arm, row id, sample) -> facts, in the order of first appearance, each with a number of the keeper's own."""

    def __init__(self) -> None:
        self._packed: dict[bytes, bytes] = {}
        self._numbers: dict[Any, int] = {}
        self._values: list[Any] = []

    def put(self, facts: Facts, note: int) -> None:
        """Keep ``facts``; earlier ones of the same key are replaced in their place. ``note`` comes back by ``note``."""
        rest = [getattr(facts, name) for name in _REST]
        for place in _PLACES:
            rest[place] = self._number(rest[place])
        self._packed[self._pack(facts.key)] = marshal.dumps((note, *rest))

    def note(self, key: Key) -> int:
        return self._unpack(key)[0]

    def __getitem__(self, key: Key) -> Facts:
        return self._facts(key, self._unpack(key))

    def __iter__(self) -> Iterator[Key]:
        for packed in self._packed:
            arm, row_id, sample = marshal.loads(packed)
            yield self._values[arm], row_id, sample

    def __len__(self) -> int:
        return len(self._packed)

    def _facts(self, key: Key, packed: tuple[Any, ...]) -> Facts:
        rest = list(packed[1:])
        for place in _PLACES:
            rest[place] = self._values[rest[place]]
        return Facts(*key, *rest)

    def _pack(self, key: Key) -> bytes:
        arm, row_id, sample = key
        return marshal.dumps((self._number(arm), row_id, sample), 2)  # without marks of what is shared in memory

    def _unpack(self, key: Key) -> tuple[Any, ...]:
        try:
            return marshal.loads(self._packed[self._pack(key)])
        except KeyError:
            raise KeyError(key) from None

    def _number(self, value: Any) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
        return number
