"""An expert behind any OpenAI-compatible server.

The one idea: the library builds and sends one request; everything that decides (which replica, whether
again, how many bytes, what the reply means) is ours and leaves as an `ExpertReply` or an `ExpertFailure`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experts.clients.chat_reply import read_reply
from experts.clients.chat_request import write_request
from experts.clients.failure import Failed
from experts.clients.hedge import first_good
from experts.clients.replicas import Lease, Replicas
from experts.clients.retry import RetryPolicy
from experts.outcome import ExpertFailure, ExpertReply, Outcome, Try
from experts.per_loop import PerLoop
from experts.request import Request
from registry.schema import Limits, OpenAIBackend

if TYPE_CHECKING:
    from experts.clients.sender import Sender

_CHARACTERS_PER_TOKEN = 16  # far more than any text has on average


class OpenAIExpertBackend:
    """One expert's servers. Safe to use from several event loops."""

    def __init__(
        self,
        backend: OpenAIBackend,
        limits: Limits,
        *,
        retry: RetryPolicy | None = None,
        replicas: Replicas | None = None,
    ) -> None:
        self._backend = backend
        self._limits = limits
        self._retry = retry or RetryPolicy()
        self._replicas = replicas or Replicas(backend.replicas)
        self._senders: PerLoop[list[Sender]] = PerLoop(list)

    async def prepare(self) -> None:
        """Load the client library now, which takes most of a second."""
        await asyncio.to_thread(importlib.import_module, "experts.clients.sender")

    async def ask(self, request: Request, tries: list[Try] | None = None) -> ExpertReply:
        """The reply, after as many tries as the policy allows, each on another replica where there is one.
        Every try that ends is added to `tries`, also when the caller is cancelled. Raises ExpertFailure."""
        if len(request.prompt) > _CHARACTERS_PER_TOKEN * self._limits.context_tokens:
            raise ExpertFailure(
                Outcome.TOO_LONG, f"a prompt of {len(request.prompt)} characters was not sent", attempts=0
            )
        body = write_request(request, self._backend.model, self._limits.max_output_tokens)
        call = _Call(body, request.timeout_s, [] if tries is None else tries)
        last: Failed | None = None
        for number in range(1, self._retry.tries + 1):
            try:
                reply = await self._round(call)
                return replace(reply, attempts=call.attempts)
            except _NoServer:
                why = f"; last: {last.message}" if last else ""
                raise ExpertFailure(
                    Outcome.UNAVAILABLE, f"no server takes requests now{why}", attempts=call.attempts
                ) from None
            except Failed as failed:
                last = failed
            if not last.again or number == self._retry.tries:
                break
            await asyncio.sleep(self._retry.pause(number, last.retry_after_s))
        assert last is not None
        raise ExpertFailure(last.outcome, last.message, attempts=call.attempts)

    def all_rest(self) -> bool:
        """Whether a call now would fail at once, because all servers have failed too often."""
        return self._replicas.all_rest()

    def status(self) -> list[dict[str, Any]]:
        """State and counts of each server, see `Replicas.status`."""
        return self._replicas.status()

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        for sender in self._senders.pop() or []:
            await sender.aclose()

    async def _round(self, call: _Call) -> ExpertReply:
        """One try, with a second one beside it where hedging is on. Raises Failed or _NoServer."""
        after_s = self._limits.hedge_after_s
        if after_s is None:
            return await self._try(call)
        return await first_good(self._try(call), lambda: self._hedge(call), after_s)

    async def _hedge(self, call: _Call) -> ExpertReply | None:
        try:
            return await self._try(call, hedge=True)
        except _NoServer:
            return None

    async def _try(self, call: _Call, *, hedge: bool = False) -> ExpertReply:
        with self._replicas.lease(avoid=call.tried, other=hedge) as lease:
            if lease is None:
                raise _NoServer
            call.tried.append(lease.url)
            call.attempts += 1
            started, outcome, why = time.monotonic(), None, ""
            try:
                reply = await self._send(lease, call)
                outcome = Outcome.OK
                return reply
            except Failed as failed:
                outcome, why = failed.outcome, failed.message
                raise
            finally:
                lease.outcome = outcome
                call.tries.append(Try(lease.url, outcome, time.monotonic() - started, why, hedge))

    async def _send(self, lease: Lease, call: _Call) -> ExpertReply:
        try:
            sender = await self._sender(lease.url)
            # Our own timer: the library's limits are per read, and a server may trickle bytes for ever.
            async with asyncio.timeout(call.timeout_s):
                body = await sender.post(lease.url, call.body)
            reply = read_reply(body)
        except TimeoutError:
            lease.alive = False
            what = f"{lease.url} took longer than {call.timeout_s:g} s"
            raise Failed(Outcome.TIMEOUT, what, again=True, alive=False) from None
        except Failed as failed:
            lease.alive = failed.alive
            raise
        lease.alive = True
        return reply

    async def _sender(self, url: str) -> Sender:
        """The running loop's sender. Raises Failed where the key is missing."""
        if not self._senders.get():
            await self.prepare()  # in a thread: other calls go on meanwhile
        senders = self._senders.get()
        if not senders:
            from experts.clients.sender import Sender

            name = self._backend.api_key_env
            key = os.environ.get(name) if name else None
            if name and not key:
                what = f"no key for {url}: set the environment variable {name}"
                raise Failed(Outcome.UNAVAILABLE, what, again=False, alive=None)
            senders.append(Sender(key, self._limits.max_reply_bytes))
        return senders[0]


class _NoServer(Exception):
    """No server takes a request now."""


class _Call:
    """What the tries of one call share. timeout_s: for each of them."""

    def __init__(self, body: bytes, timeout_s: float, tries: list[Try]) -> None:
        self.body, self.timeout_s, self.tries = body, timeout_s, tries
        self.tried: list[str] = []
        self.attempts = 0
