"""Retrieval dispatch: the expert and the skill whose descriptions are nearest to the question (paper, G.6).

The one idea: model and skill are chosen apart, by the words alone and once; what this rule cannot do is exactly what
a learnt router can: know which expert does well under which skill, look at the picture, and ask again.
"""

from __future__ import annotations

import time
from typing import Literal

from orchestrator.episode import Episode
from orchestrator.policies.descriptions import expert_text, skill_text
from orchestrator.policies.embedding_client import EmbeddingClient
from orchestrator.policies.once import call_of, reply_as_answer, task_of
from orchestrator.policies.rank_bm25 import BM25
from orchestrator.policies.rank_vectors import NgramVectors, ServedVectors
from orchestrator.policies.ranking import Ranking
from orchestrator.policy import PolicyTurn
from registry.registry import Registry

Method = Literal["bm25", "embedding"]


class RetrievalDispatch:
    """Asks the pair that was found, then repeats its reply. Equally near ones: the first in the registry's order.

    client: where vectors come from for `embedding`; none: character n-grams. It is closed with this policy.
    """

    def __init__(self, registry: Registry, method: Method, client: EmbeddingClient | None = None) -> None:
        self.name = f"retrieval:{method}"
        self._experts = [expert.name for expert in registry.experts]
        self._skills = [skill.name for skill in registry.skills]
        self._client = client
        self._by_expert = _ranking(method, [expert_text(expert) for expert in registry.experts], client)
        self._by_skill = _ranking(method, [skill_text(skill) for skill in registry.skills], client)

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        """Raises InfrastructureError where the embedding server gives no vectors."""
        started, tokens = time.perf_counter(), 0
        text = reply_as_answer(episode)
        if text is None:
            question = task_of(episode).question
            expert, skill = await self._by_expert.best(question), await self._by_skill.best(question)
            text = call_of(episode, (self._experts[expert.place], self._skills[skill.place]))
            tokens = expert.tokens + skill.tokens
        return PolicyTurn(text, latency_s=time.perf_counter() - started, prompt_tokens=tokens)

    async def aclose(self) -> None:
        """Closes index and client."""
        await self._by_expert.aclose()
        await self._by_skill.aclose()
        if self._client is not None:
            await self._client.aclose()


def _ranking(method: Method, texts: list[str], client: EmbeddingClient | None) -> Ranking:
    if method == "bm25":
        return BM25(texts)
    return NgramVectors(texts) if client is None else ServedVectors(texts, client)
