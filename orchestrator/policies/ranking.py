"""What a retrieval rule needs of its method: which of a list of texts fits a question best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Ranked:
    """Position of the best text (the first of equals), and what finding it took."""

    place: int
    tokens: int = 0
    """Read by an embedding model, where one was asked."""


class Ranking(Protocol):
    """Ranks a fixed list of texts; made once, used for many questions."""

    async def best(self, question: str) -> Ranked:
        """May raise `InfrastructureError` where a server is asked."""
        ...

    async def aclose(self) -> None: ...
