"""The chat server: `POST /v1/chat/completions`, `GET /v1/models`, `GET /health`.

The one idea: a request is the whole state of its session, so sessions cannot reach each other and nothing is kept
between requests. A place is taken before the body is read, which bounds the memory of all bodies together; a client
that hangs up cancels its step. Statuses: 400 the request, 401 the key, 404 another model, 408 a body that does not
come, 413 too large, 415 no JSON, 429 all places taken, 502 the policy failed, 503 an expert failed, 504 too late.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from orchestrator.budget import Budget
from orchestrator.policy import Policy
from orchestrator.runner import Delegates
from orchestrator.serving.completion import completion, error
from orchestrator.serving.conversation import Conversation, RequestFault, read_body, read_conversation
from orchestrator.serving.limits import ServingLimits
from orchestrator.serving.step import Source, StepFault, take_step
from orchestrator.trajectory import Trajectory

_LOG = logging.getLogger("maestro.serving")
_BODY_S = 30.0  # for a request's body to arrive


@dataclass
class ChatServer:
    """What a server runs on. model: the name that requests must give. key: what they must show, if anything.
    record: gets each step's trajectory. policy and pool are the caller's to close."""

    policy: Policy
    pool: Delegates
    model: str = "maestro"
    budget: Budget = field(default_factory=Budget)
    limits: ServingLimits = field(default_factory=ServingLimits)
    source: Source = "expert"
    seed: int = 0
    key: str | None = None
    record: Callable[[Trajectory], None] | None = None

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.limits.concurrency)
        self._inside = 0
        self._counts = {"steps": 0, "refused": 0, "failed": 0, "unreadable": 0, "without_answer": 0}
        self._tokens = {"prompt_tokens": 0, "completion_tokens": 0}

    def application(self) -> web.Application:
        """A fresh application over this server."""
        app = web.Application(client_max_size=self.limits.body_bytes, middlewares=[self._border])
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        return app

    @web.middleware
    async def _border(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Checks the key; turns whatever a handler raises into an error in OpenAI's form."""
        try:
            if self.key is not None and request.path != "/health":
                shown = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
                if not hmac.compare_digest(shown.encode(), self.key.encode()):
                    raise RequestFault("wrong or missing API key", None, "invalid_api_key", 401)
            return await handler(request)
        except RequestFault as fault:
            self._counts["refused"] += 1
            kind = "invalid_request_error" if fault.status != 429 else "rate_limit_error"
            body = error(fault.message, kind, param=fault.param, code=fault.code)
            headers = {"Retry-After": "1"} if fault.status == 429 else None
            return web.json_response(body, status=fault.status, headers=headers)
        except StepFault as fault:
            self._counts["failed"] += 1
            _LOG.warning("step failed: %s", fault.message[:500])
            return web.json_response(error(fault.message, "infrastructure_error"), status=fault.status)
        except web.HTTPException as ending:
            self._counts["refused"] += 1
            return web.json_response(error(ending.reason, "invalid_request_error"), status=ending.status)
        except Exception:  # the border: a fault of ours must not show its insides to a client
            self._counts["failed"] += 1
            _LOG.exception("a request failed")
            return web.json_response(error("internal error, see the server's log", "server_error"), status=500)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if request.content_type != "application/json":  # also keeps out forms that a browser sends unasked
            raise RequestFault("send content type application/json", None, "invalid_content_type", 415)
        most = self.limits.concurrency + self.limits.waiting
        if self._inside >= most:
            raise RequestFault(f"{most} steps are running or waiting; try again", None, "rate_limit_exceeded", 429)
        self._inside += 1
        try:
            return await self._admitted(request)
        finally:
            self._inside -= 1

    async def _admitted(self, request: web.Request) -> web.StreamResponse:
        end = time.monotonic() + self.limits.step_s
        conversation = await self._conversation(request)
        try:
            async with asyncio.timeout(end - time.monotonic()):
                await self._places.acquire()
        except TimeoutError:
            raise StepFault(f"no place became free within {self.limits.step_s:g} s", 504) from None
        try:
            step, trajectory = await take_step(
                conversation,
                self.policy,
                self.pool,
                budget=self.budget,
                view_chars=self.limits.view_chars,
                source=self.source,
                seed=self.seed,
                deadline_s=max(0.001, end - time.monotonic()),
            )
        finally:
            self._places.release()
        if self.record is not None:
            self.record(trajectory)
        if isinstance(step, StepFault):
            raise step
        made = completion(step, trajectory, self.model)
        self._counts["steps"] += 1
        self._counts["unreadable"] += step.reply.form == "unreadable"
        self._counts["without_answer"] += step.source == "none"
        for name in self._tokens:
            self._tokens[name] += made["usage"][name]
        return web.json_response(made)

    async def _conversation(self, request: web.Request) -> Conversation:
        try:
            async with asyncio.timeout(min(_BODY_S, self.limits.step_s)):
                body = await request.read()
        except TimeoutError:
            raise RequestFault("the body did not arrive in time", None, "timeout", 408) from None
        except web.HTTPRequestEntityTooLarge:
            message = f"the body is larger than {self.limits.body_bytes} bytes"
            raise RequestFault(message, None, "too_large", 413) from None
        data = read_body(body)
        conversation = await asyncio.to_thread(read_conversation, data, self.limits)
        if conversation.model != self.model:
            message = f"no model {conversation.model[:100]!r} here; this server's is {self.model!r}"
            raise RequestFault(message, "model", "model_not_found", 404)
        return conversation

    async def _models(self, _: web.Request) -> web.StreamResponse:
        card: dict[str, Any] = {"id": self.model, "object": "model", "created": 0, "owned_by": "maestro"}
        return web.json_response({"object": "list", "data": [card]})

    async def _health(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok", "inside": self._inside, **self._counts, **self._tokens})
