"""Texts ranked by BM25, as SQLite's full-text index FTS5 computes it.

The one idea: the standard library already holds a well-kept BM25 (k1 = 1.2, b = 0.75, Porter stems). Scripts written
without spaces are one word to it, so that a question in Chinese finds only what stands in the same run of signs.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from orchestrator.policies.ranking import Ranked
from registry.errors import UserFault
from registry.words import fold

_WORD = re.compile(r"\w+")
_MOST_WORDS = 256  # of a question


class BM25:
    """Ranks a fixed list of texts. Raises UserFault where Python's SQLite lacks FTS5."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._base.execute("CREATE VIRTUAL TABLE texts USING fts5(words, tokenize = 'porter unicode61')")
        except sqlite3.OperationalError as error:
            raise UserFault(
                f"this Python's SQLite has no full-text index: {error}", fix="use the method 'embedding'"
            ) from None
        # Underscores join the words of a name; folding parts them.
        self._base.executemany("INSERT INTO texts (rowid, words) VALUES (?, ?)", enumerate(map(fold, texts), 1))

    async def best(self, question: str) -> Ranked:
        """The text that fits best; the first one where no word is shared."""
        words = dict.fromkeys(_WORD.findall(fold(question)))
        asked = " OR ".join(f'"{word}"' for word in list(words)[:_MOST_WORDS])
        query = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT 1"
        found = self._base.execute(query, (asked,)).fetchone() if asked else None
        return Ranked(0 if found is None else found[0] - 1)

    async def aclose(self) -> None:
        """Frees the index."""
        self._base.close()
