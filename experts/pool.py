"""`ExpertPool`: carries out delegations `expert@@skill: question` on pictures.

The one idea: whatever happens to a delegation, a `Delegation` comes back before its deadline. The pool
looks up names, finds the Level-2 procedure, runs it, remembers what need not be computed twice, and adds up
time, tokens and money.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from experts.cache import CallCache
from experts.caller import Caller
from experts.clients import deadlines
from experts.data_url import holds_image_data
from experts.delegating import End, Work
from experts.endpoints import with_endpoints
from experts.images import Picture
from experts.outcome import Delegation, Outcome
from experts.request import Backend
from experts.tools.toolbox import Toolbox
from experts.workers import Workers
from registry.errors import UnknownName
from registry.registry import Registry

_LOG = logging.getLogger("maestro.experts")


class ExpertPool:
    """All experts and tools of a registry.

    cache_dir: where results of deterministic calls are kept between runs; memory alone without it.
    default_deadline_s: seconds for one delegation, routing, tools and retries included.
    reasoning_tail_chars: how much of a reasoning expert's thoughts stands in for an answer it left empty.
    backends: experts' names to backends that take the place of those in the registry.
    endpoints: a file that says where the servers are (see `experts.endpoints`). `registry` stays as it was
    given: where servers are is no part of what they are. Raises UserFault for a file that does not fit.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        cache_dir: Path | None = None,
        default_deadline_s: float = 60.0,
        reasoning_tail_chars: int = 0,
        backends: dict[str, Backend] | None = None,
        endpoints: Path | None = None,
    ) -> None:
        self.registry = registry
        placed = registry if endpoints is None else with_endpoints(registry, endpoints)
        self._default_deadline_s = default_deadline_s
        self._workers = Workers()
        self._cache = CallCache(cache_dir)
        self._tools = Toolbox(placed, self._workers, self._cache)
        self._callers = {
            expert.name: Caller(
                expert,
                self._workers,
                reasoning_tail_chars=reasoning_tail_chars,
                backend=(backends or {}).get(expert.name),
            )
            for expert in placed.experts
        }

    async def delegate(
        self,
        expert: str,
        skill: str,
        question: str,
        pictures: Sequence[Picture],
        *,
        deadline_s: float | None = None,
    ) -> Delegation:
        """Ask `expert` under the Level-1 `skill`. Returns within `deadline_s` seconds and never raises for
        what an expert, a tool, a server or a name does; cancelling it cancels the call."""
        started = time.monotonic()
        try:
            chosen, level_1 = self.registry.expert(expert), self.registry.skill(skill)
        except UnknownName as unknown:
            return _invalid(expert, skill, str(unknown), _unknown_sentence(unknown))
        if not question.strip():
            return _invalid(chosen.name, level_1.name, "empty question", "The question is empty.")
        if holds_image_data(question):
            sentence = "The question holds image data; the picture goes along by itself."
            return _invalid(chosen.name, level_1.name, "image data pasted into the question", sentence)
        limit, whose = deadlines.nearest(self._default_deadline_s if deadline_s is None else deadline_s)
        work = Work(self._callers[chosen.name], self._tools, self._cache, level_1, question, tuple(pictures))
        if limit <= 0:
            return work.report(End(Outcome.DEADLINE, error=f"the {whose}'s time was used up before"), 0.0)
        timer = asyncio.timeout(limit)
        try:
            async with timer:
                end = await work.carry_out(limit)
        except Exception as error:  # the border: nothing that a call does may end an episode
            if timer.expired():
                end = End(Outcome.DEADLINE, error=f"not finished after {limit:g} s, when the {whose}'s time was up")
            else:
                _LOG.exception("delegation to %s@@%s failed", chosen.name, level_1.name)
                end = End(Outcome.ERROR, error=f"{type(error).__name__}: {error}")
        return work.report(end, time.monotonic() - started)

    def within(self, seconds: float, of: str = "batch") -> AbstractContextManager[None]:
        """A block that bounds all delegations which start inside it, in tasks too: an episode's or a batch's
        deadline, `seconds` from now. The nearest end counts; what it cuts off is an outcome `deadline`."""
        return deadlines.within(seconds, of)

    def status(self) -> dict[str, dict[str, Any]]:
        """How each expert does, as plain data by name: `backend`, `replicas` (url, weight, state, in_flight,
        requests, failures, ...), `queued`, `in_flight`, `calls`, `outcomes`, `latency_s`, `tokens`, `cost`;
        counted since the pool was made."""
        return {name: caller.status() for name, caller in self._callers.items()}

    async def prepare(self) -> None:
        """Load all embedded experts and tools now instead of on their first call. Raises UserFault."""
        for caller in self._callers.values():
            await caller.prepare()
        await self._tools.prepare()

    async def aclose(self) -> None:
        """Close connections, threads and the cache folder."""
        for caller in self._callers.values():
            await caller.aclose()
        await self._tools.aclose()
        self._workers.close()
        self._cache.close()

    async def __aenter__(self) -> ExpertPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _invalid(expert: str, skill: str, error: str, sentence: str) -> Delegation:
    return Delegation(Outcome.INVALID_ACTION, sentence, expert, skill, error=error)


def _unknown_sentence(unknown: UnknownName) -> str:
    nearest = f" Nearest: {', '.join(unknown.suggestions)}." if unknown.suggestions else ""
    return f"There is no {unknown.kind} {unknown.name!r}.{nearest}"
