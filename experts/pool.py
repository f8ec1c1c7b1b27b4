"""`ExpertPool`: carries out delegations `expert@@skill: question` on pictures.

The one idea: whatever happens to a delegation, a `Delegation` comes back before its deadline. The pool
looks up names, finds the Level-2 procedure, runs it, remembers what need not be computed twice, and adds up
time, tokens and money.
"""

from __future__ import annotations

import asyncio
import gc
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
from experts.pool_report import report_lines
from experts.request import Backend
from experts.tools.toolbox import Toolbox
from experts.workers import Workers
from registry.errors import UnknownName
from registry.registry import Registry
from registry.schema import Expert, Skill

_LONG_ENOUGH_S = 60.0  # for a delegation, where neither the caller nor the registry says
# The clock rings a little before the deadline: what it ends has to be taken down while other calls are running.
_EARLY_S, _EARLY_SHARE = 0.04, 0.05

_LOG = logging.getLogger("maestro.experts")


class ExpertPool:
    """All experts and tools of a registry.

    cache_dir: where results of deterministic calls are kept between runs; memory alone without it.
    default_deadline_s: seconds for one delegation, routing, tools and retries included, where its caller names none.
    The registry's word (the longer of the expert's and the skill's `deadline_s`) bounds every delegation, whoever asks
    for more; 60 s where nobody says anything.
    reasoning_tail_chars: how much of a reasoning expert's thoughts stands in for an answer it left empty, for experts
    whose `sampling` does not say.
    backends: experts' names to backends that take the place of those in the registry.
    endpoints: a file that says where the servers are (see `experts.endpoints`). `registry` stays as it was
    given: where servers are is no part of what they are. Raises UserFault for a file that does not fit.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        cache_dir: Path | None = None,
        default_deadline_s: float | None = None,
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
        """Ask `expert` under the Level-1 `skill`. Returns within `deadline_s` seconds (less where the registry
        allows less) and never raises for what an expert, a tool, a server or a name does; cancelling it cancels
        the call."""
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
        asked_s = self._default_deadline_s if deadline_s is None else deadline_s
        limit, whose = deadlines.nearest(_allowed_s(chosen, level_1, asked_s))
        work = Work(self._callers[chosen.name], self._tools, self._cache, level_1, question, tuple(pictures))
        if limit <= (0.0 if whose == deadlines.OWN else _EARLY_S):  # what an early end left over is no time to begin in
            return work.report(End(Outcome.DEADLINE, error=f"the {whose}'s time was used up before"), 0.0)
        timer = asyncio.timeout(limit - min(_EARLY_S, _EARLY_SHARE * limit))
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

    def status(self) -> dict[str, dict[str, dict[str, Any]]]:
        """How each of the `experts` and `tools` does, as plain data by name: `backend`, `replicas` (url, weight,
        state, in_flight, requests, failures, ...), `queued`, `in_flight`, `calls`, `outcomes`, `latency_s`, `tokens`,
        `cost`; counted since the pool was made."""
        experts = {name: caller.status() for name, caller in self._callers.items()}
        return {"experts": experts, "tools": self._tools.status()}

    async def prepare(self) -> None:
        """Load all embedded experts and tools now instead of on their first call. Raises UserFault.

        The first time in a process, what is loaded by then is also taken out of later garbage collections, each of
        which would stop all calls for as long as it takes to look at it (50 ms and more)."""
        for caller in self._callers.values():
            await caller.prepare()
        await self._tools.prepare()
        if not gc.get_freeze_count():
            gc.collect()
            gc.freeze()

    async def aclose(self) -> None:
        """Close connections, threads and the cache folder. Logs a line for each expert and tool that was called,
        a warning where many calls gave no answer (see `experts.pool_report`)."""
        for level, line in report_lines(self.status()):
            _LOG.log(level, line)
        for caller in self._callers.values():
            await caller.aclose()
        await self._tools.aclose()
        self._workers.close()
        self._cache.close()

    async def __aenter__(self) -> ExpertPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _allowed_s(expert: Expert, skill: Skill, asked_s: float | None) -> float:
    """Seconds for a delegation: `asked_s`, but no more than the registry has, where each of the two knows only its own
    half of the work."""
    stated_s = max(expert.deadline_s or 0.0, skill.deadline_s or 0.0) or None
    return min((s for s in (asked_s, stated_s) if s is not None), default=_LONG_ENOUGH_S)


def _invalid(expert: str, skill: str, error: str, sentence: str) -> Delegation:
    return Delegation(Outcome.INVALID_ACTION, sentence, expert, skill, error=error)


def _unknown_sentence(unknown: UnknownName) -> str:
    nearest = f" Nearest: {', '.join(unknown.suggestions)}." if unknown.suggestions else ""
    return f"There is no {unknown.kind} {unknown.name!r}.{nearest}"
