"""Texts ranked by the cosine of their vectors with the question's: vectors of character n-grams, or a served model's.

The one idea: both are the same rule. N-grams need no model and know no synonyms, so they are a floor for what an
embedding model does; with a server the vectors are the model's own.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from orchestrator.policies.embedding_client import EmbeddingClient
from orchestrator.policies.ranking import Ranked
from registry.words import fold

_SIZES = (3, 4, 5)
_LONGEST = 4000  # characters of a question that are looked at


class NgramVectors:
    """TF-IDF: (1 + ln count) x (1 + ln((1 + texts) / (1 + texts that hold the n-gram))); n-grams of 3 to 5 characters
    lie within words, whose ends count as a space. Those that no text holds count for nothing."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [_ngrams(text) for text in texts]
        held = Counter(gram for count in counts for gram in count)
        self._rarity = {gram: 1 + math.log((1 + len(texts)) / (1 + n)) for gram, n in held.items()}
        self._vectors = [self._vector(count) for count in counts]

    async def best(self, question: str) -> Ranked:
        """The nearest text; the first one where nothing is shared."""
        asked = self._vector(_ngrams(question[:_LONGEST]))
        return Ranked(_first_largest([_dot(asked, vector) for vector in self._vectors]))

    async def aclose(self) -> None:
        """Nothing is held."""

    def _vector(self, counts: Mapping[str, int]) -> dict[str, float]:
        known = {gram: (1 + math.log(n)) * self._rarity[gram] for gram, n in counts.items() if gram in self._rarity}
        length = math.sqrt(sum(value * value for value in known.values())) or 1.0
        return {gram: value / length for gram, value in known.items()}


class ServedVectors:
    """Vectors of a model behind `client`, which is not closed here. The texts are embedded once, with the first
    question."""

    def __init__(self, texts: Sequence[str], client: EmbeddingClient) -> None:
        self._texts = list(texts)
        self._client = client
        self._vectors: list[list[float]] | None = None
        self._first = asyncio.Lock()

    async def best(self, question: str) -> Ranked:
        """The nearest text. Raises InfrastructureError where the server gives no vectors."""
        tokens = 0
        async with self._first:
            if self._vectors is None:
                made = await self._client.embed(self._texts)
                self._vectors, tokens = [_unit(vector) for vector in made.vectors], made.tokens
        asked = await self._client.embed([question])
        nearness = [sum(map(float.__mul__, _unit(asked.vectors[0]), vector)) for vector in self._vectors]
        return Ranked(_first_largest(nearness), tokens + asked.tokens)

    async def aclose(self) -> None:
        """Nothing is held but the client, which belongs to whoever made it."""


def _ngrams(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for word in fold(text).split():
        padded = f" {word} "
        for size in _SIZES:
            found.update(padded[i : i + size] for i in range(max(1, len(padded) - size + 1)))
    return found


def _dot(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(value * other[gram] for gram, value in one.items() if gram in other)


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def _first_largest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda place: values[place])
