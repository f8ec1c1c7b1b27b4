"""One expert, ready to be asked: its backend, its limit of calls at once, its bounds and its prices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from experts.cache import content_key
from experts.clients.openai_backend import OpenAIExpertBackend
from experts.clients.python_backend import PythonExpertBackend
from experts.clients.tally import Tally
from experts.images import Picture
from experts.outcome import ExpertFailure, ExpertReply, Outcome, Try, Usage
from experts.request import Backend, Request
from experts.turns import Turns
from experts.workers import Workers
from registry.schema import Expert, OpenAIBackend


@dataclass
class Ledger:
    """What one delegation has used so far; kept apart so that it survives a deadline."""

    usage: Usage = field(default_factory=Usage)
    attempts: int = 0
    notes: list[str] = field(default_factory=list)
    tries: list[Try] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Write down what was done differently than asked, once."""
        if text not in self.notes:
            self.notes.append(text)


class Caller:
    """Asks one expert. Safe to use from several event loops.

    reasoning_tail_chars: how much of an expert's reasoning stands in for an answer that it did not write, where its
    `sampling` in the registry does not say.
    """

    def __init__(
        self,
        expert: Expert,
        workers: Workers,
        *,
        reasoning_tail_chars: int = 0,
        backend: Backend | None = None,
    ) -> None:
        self.expert = expert
        self._tail = expert.sampling.reasoning_tail_chars or reasoning_tail_chars
        self._backend = backend or _backend(expert, workers)
        self._served = self._backend if isinstance(self._backend, OpenAIExpertBackend) else None
        self._tally = Tally()
        self._turns = Turns(expert.limits.max_concurrency, self._tally, self._served)

    @cached_property
    def digest(self) -> str:
        """What the expert's answers depend on beside the question."""
        expert = self.expert
        return content_key(
            "expert",
            expert.name,
            expert.revision,
            expert.backend.model_dump(mode="json", exclude={"replicas", "api_key_env"}),
            expert.sampling.model_copy(update={"reasoning_tail_chars": self._tail}).model_dump(mode="json"),
            [expert.limits.max_images, expert.limits.max_output_tokens],
        )

    async def ask(self, prompt: str, system: str | None, pictures: Sequence[Picture], ledger: Ledger) -> ExpertReply:
        """The expert's reply. Raises ExpertFailure; what was used is in the ledger either way."""
        limits = self.expert.limits
        if len(pictures) > limits.max_images:
            ledger.note(
                f"{len(pictures)} pictures for {self.expert.name}, which takes {limits.max_images}: "
                + (f"the first {limits.max_images} sent" if limits.max_images else "none sent")
            )
        request = Request(
            prompt=prompt,
            pictures=tuple(pictures[: limits.max_images]),
            system=system,
            sampling=self.expert.sampling,
            timeout_s=limits.timeout_s,
        )
        async with self._turns.take():
            reply = await self._ask(request, ledger)
        return self._bounded(reply, ledger)

    async def prepare(self) -> None:
        """Load what the first call would load. Raises UserFault."""
        prepare = getattr(self._backend, "prepare", None)
        if prepare is not None:
            await prepare()

    async def aclose(self) -> None:
        """Close the backend."""
        await self._backend.aclose()

    def status(self) -> dict[str, Any]:
        """Plain data: `Tally.status`, and the state of each server (none for an embedded program)."""
        replicas = [] if self._served is None else self._served.status()
        return {"backend": self.expert.backend.type, "replicas": replicas, **self._tally.status()}

    async def _ask(self, request: Request, ledger: Ledger) -> ExpertReply:
        """The backend's reply, entered into ledger and tally however it ends."""
        started, before = time.monotonic(), len(ledger.tries)
        ended, attempts, usage = "given_up", None, Usage()
        try:
            if self._served is not None:
                reply = await self._served.ask(request, ledger.tries)
            else:
                reply = await self._backend.ask(request)
            ended, attempts, usage = Outcome.OK.value, reply.attempts, self._priced(reply.usage)
            return replace(reply, usage=usage)
        except ExpertFailure as failure:
            ended, attempts, usage = failure.outcome.value, failure.attempts, self._priced(failure.usage)
            raise
        except Exception:
            ended = Outcome.ERROR.value
            raise
        finally:
            ledger.attempts += len(ledger.tries) - before if attempts is None else attempts
            ledger.usage += usage
            self._tally.ended(ended, time.monotonic() - started, usage)

    def _priced(self, usage: Usage) -> Usage:
        price = self.expert.price
        money = usage.prompt_tokens * price.input_per_mtok + usage.completion_tokens * price.output_per_mtok
        return replace(usage, cost=usage.cost + money / 1_000_000)

    def _bounded(self, reply: ExpertReply, ledger: Ledger) -> ExpertReply:
        text = reply.text
        if not text.strip() and reply.reasoning and self._tail:
            text = reply.reasoning[-self._tail :]
            ledger.note("the end of the expert's reasoning stands in for an empty answer")
        # Lone surrogates cannot be written anywhere; a huge text must not reach a tokenizer.
        encoded = text.encode("utf-8", "replace")
        check_size(encoded, self.expert.limits.max_reply_bytes, ledger.attempts)
        return replace(reply, text=encoded.decode("utf-8"))


def check_size(encoded: bytes, limit: int, attempts: int = 1) -> None:
    """Raises ExpertFailure(TOO_LONG) when a reply is larger than its limit in bytes."""
    if len(encoded) > limit:
        raise ExpertFailure(Outcome.TOO_LONG, f"the reply is larger than {limit} bytes", attempts=attempts)


def _backend(expert: Expert, workers: Workers) -> Backend:
    if isinstance(expert.backend, OpenAIBackend):
        return OpenAIExpertBackend(expert.backend, expert.limits)
    return PythonExpertBackend(expert.backend, workers)
