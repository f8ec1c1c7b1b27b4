"""The trajectory browser's data: cards as numbers that point into one table of texts, within a size limit.

The one idea: most texts come again and again (questions, answers, calls, reasons), so each is stored once. A card is
taken whole or not at all, and the first one that does not fit ends the taking: what is left out is the end of the
order in `eval.report.choice`.
"""

from __future__ import annotations

import json
from typing import Any

from eval.report.cards import Card, Turn


class Bundle:
    """Cards within ``limit`` bytes of the finished file."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self.full = False
        self.rows: set[str] = set()
        self.cards: list[list[Any]] = []
        self._strings: dict[str, int] = {}
        self._pictures: dict[str, int] = {}

    def add(self, card: Card) -> bool:
        """Whether the card fitted; after the first one that did not, none does."""
        if self.full:
            return False
        new: dict[str, int] = {}
        entry = self._entry(card, new)
        size = len(json.dumps(entry, separators=(",", ":"))) + 1
        size += sum(len(json_in_html(text).encode()) + 1 for text in new)
        if self.bytes + size > self.limit:
            self.full = True
            return False
        self.bytes += size
        self._strings.update(new)
        self.rows.add(card.row_id)
        for sha256 in card.pictures:
            self._pictures.setdefault(sha256, len(self._pictures))
        entry[_PICTURES] = [self._pictures[sha256] for sha256 in card.pictures]
        self.cards.append(entry)
        return True

    @property
    def pictures(self) -> list[str]:
        """SHA-256 sums of the cards' pictures, in the order in which they came."""
        return list(self._pictures)

    def picture_index(self, sha256: str) -> int | None:
        return self._pictures.get(sha256)

    def to_json(self) -> dict[str, Any]:
        return {"strings": list(self._strings), "cards": self.cards}

    def _entry(self, card: Card, new: dict[str, int]) -> list[Any]:
        """The order of the fields is that of ``script.js``."""

        def at(text: str) -> int:
            known = self._strings.get(text)
            return new.setdefault(text, len(self._strings) + len(new)) if known is None else known

        def turn(one: Turn) -> list[int]:
            fields = (one.kind, one.text, one.dropped, one.call, one.outcome, one.detail, one.observation, one.error)
            return [at(field) for field in fields]

        texts = (
            card.arm, card.verdict, card.family, card.split, card.stop, card.row_id, card.question, card.gold,
            card.answer, card.explanation, card.lenient, card.reward, card.error,
        )  # fmt: skip
        return [
            *(at(text) for text in texts),
            card.sample,
            round(1000 * card.latency_s),
            [at(pair) for pair in card.pairs],
            [at(group) for group in card.groups],
            [],
            card.picture_count,
            [turn(one) for one in card.turns],
        ]


_PICTURES = 17


def json_in_html(value: Any) -> str:
    """JSON that can stand inside a script element: no ``<`` can close it or open a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
