"""One delegation on its way: choose the Level-2 procedure, run it or find its result, report.

The one idea: what a deterministic expert says under a procedure is a function of content (expert,
procedure, tools, question, pictures), so that is what its result is kept under. Everything else about a
delegation (time, usage, why this procedure) belongs to this one call and is never kept.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from experts.cache import CallCache, content_key
from experts.caller import Caller, Ledger, check_size
from experts.images import Picture
from experts.outcome import Delegation, ExpertFailure, ExpertReply, Outcome
from experts.procedure import run_procedure
from experts.tools.result import ToolResult
from experts.tools.toolbox import Toolbox
from registry.routing import Route, route
from registry.schema import PythonBackend, Skill, Subskill

_CLASSIFY_SHARE = 0.25  # of a delegation's time, at most, goes into choosing the procedure
_LONGEST_CLASSIFY_S = 10.0

_NOTED_TRIES = 8  # a note tells of at most so many tries that gave no answer
_NOTED_CHARACTERS = 240  # of each

# What the policy is shown where there is no answer. Addresses and traces stay in `error`.
_SENTENCES = {
    Outcome.TIMEOUT: "{expert} took too long to answer.",
    Outcome.UNAVAILABLE: "{expert} is not available.",
    Outcome.EMPTY_REPLY: "{expert} gave an empty reply.",
    Outcome.TOO_LONG: "The request or the reply was too long for {expert}.",
    Outcome.REFUSED: "{expert} refused the request.",
    Outcome.ERROR: "{expert} failed.",
    Outcome.DEADLINE: "{expert} did not finish in time.",
}


@dataclass(frozen=True)
class End:
    """How a delegation ended: the answer where the outcome is OK; where it is not, the full story in `error`, and in
    `text` what the policy is shown, if it is not the usual sentence."""

    outcome: Outcome
    text: str = ""
    error: str | None = None
    notes: tuple[str, ...] = ()
    whole: bool = True  # False: an optional tool was missing, another time the answer may be better


class Work:
    """A single delegation; used once."""

    def __init__(
        self,
        caller: Caller,
        tools: Toolbox,
        cache: CallCache,
        skill: Skill,
        question: str,
        pictures: tuple[Picture, ...],
    ) -> None:
        self._caller = caller
        self._tools = tools
        self._cache = cache
        self._skill = skill
        self._question = question
        self._pictures = pictures
        self._ledger = Ledger()
        self._route: Route | None = None
        self._cached = False
        self._whole = True

    async def carry_out(self, limit_s: float) -> End:
        """Run the delegation, of which the caller will wait `limit_s` seconds."""
        self._classify_s = min(_LONGEST_CLASSIFY_S, _CLASSIFY_SHARE * limit_s)
        self._route = await route(self._skill, self._question, self._classify)
        subskill = self._route.subskill
        key = self._key(subskill)
        if key is None:
            return await self._run(subskill)

        async def compute() -> str:
            return _encode(await self._run(subskill))

        text, self._cached = await self._cache.once(key, compute, self._worth_keeping)
        end = _decode(text)
        for note in end.notes:
            self._ledger.note(note)
        return end

    def report(self, end: End, latency_s: float) -> Delegation:
        """The delegation's record."""
        expert = self._caller.expert.name
        return Delegation(
            outcome=end.outcome,
            text=end.text if end.outcome is Outcome.OK else end.text or _SENTENCES[end.outcome].format(expert=expert),
            expert=expert,
            skill=self._skill.name,
            subskill=self._route.subskill.name if self._route else None,
            reason=self._route.reason if self._route else None,
            latency_s=latency_s,
            usage=self._ledger.usage,
            attempts=self._ledger.attempts,
            cached=self._cached,
            error=end.error,
            note="; ".join([*self._ledger.notes, *self._troubles()]) or None,
            tries=tuple(self._ledger.tries),
        )

    async def ask(self, prompt: str, system: str | None, pictures: Sequence[Picture]) -> ExpertReply:
        """A procedure's question to the expert."""
        return await self._caller.ask(prompt, system, pictures, self._ledger)

    async def use(self, tool: str, picture: Picture | None, args: dict[str, str]) -> ToolResult:
        """A procedure's use of a tool."""
        return await self._tools.use(tool, picture, args, self._ledger)

    def missed(self, failure: ExpertFailure) -> None:
        """An optional tool failed: it is noted, and the result is not kept for others."""
        self._whole = False
        self._ledger.note(f"without an optional tool: {failure.message}"[:_NOTED_CHARACTERS])

    def _troubles(self) -> list[str]:
        """The tries that gave no answer, in words, so that every record of the call tells why it took several."""
        failed = [
            f"try {number} of {len(self._ledger.tries)}: {one}"[:_NOTED_CHARACTERS]
            for number, one in enumerate(self._ledger.tries, 1)
            if one.outcome is not Outcome.OK
        ]
        more = len(failed) - _NOTED_TRIES
        return failed[:_NOTED_TRIES] + ([f"{more} more tries without an answer"] if more > 0 else [])

    async def _classify(self, prompt: str) -> str | None:
        """The expert's word on which procedure fits; None when it gives none in the time allowed."""

        async def compute() -> str:
            return (await self.ask(prompt, None, self._pictures)).text

        try:
            async with asyncio.timeout(self._classify_s):
                if not self._caller.expert.deterministic:
                    return await compute()
                key = content_key("classify", self._caller.digest, prompt, _digests(self._pictures))
                return (await self._cache.once(key, compute, keep=bool))[0]
        except (TimeoutError, ExpertFailure):
            return None

    async def _run(self, subskill: Subskill) -> End:
        limit = self._caller.expert.limits.max_reply_bytes
        try:
            text = await run_procedure(self._skill.name, subskill, self._question, self._pictures, self)
            check_size(text.encode("utf-8", "replace"), limit)
        except ExpertFailure as failure:
            return End(failure.outcome, failure.shown or "", failure.message, tuple(self._ledger.notes))
        if not text:
            return End(Outcome.EMPTY_REPLY, error="no text in the reply", notes=tuple(self._ledger.notes))
        return End(Outcome.OK, text, notes=tuple(self._ledger.notes), whole=self._whole)

    def _worth_keeping(self, encoded: str) -> bool:
        end = _decode(encoded)
        program = isinstance(self._caller.expert.backend, PythonBackend)
        return (end.outcome is Outcome.OK and end.whole) or (program and end.outcome is Outcome.EMPTY_REPLY)

    def _key(self, subskill: Subskill) -> str | None:
        """What the result depends on; None when it depends on chance."""
        procedure = self._tools.digest(self._skill, subskill)
        if not self._caller.expert.deterministic or procedure is None:
            return None
        pictures = _digests(self._pictures)
        return content_key("delegation", self._caller.digest, procedure, self._question, pictures)


def _digests(pictures: Sequence[Picture]) -> list[str]:
    return [picture.sha256 for picture in pictures]


def _encode(end: End) -> str:
    return json.dumps([end.outcome.value, end.text, end.error, end.notes, end.whole])


def _decode(text: str) -> End:
    outcome, answer, error, notes, whole = json.loads(text)
    return End(Outcome(outcome), answer, error, tuple(notes), whole)
