"""A chat server on loopback over a registry of two scripted experts, and requests to it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession, web

from experts.outcome import ExpertFailure, ExpertReply, Outcome, Usage
from experts.pool import ExpertPool
from experts.request import Request
from orchestrator.budget import Budget
from orchestrator.policies.fixed_pair import FixedPair
from orchestrator.serving.app import ChatServer
from registry.registry import Registry

REGISTRY = """
experts:
  Caller:
    description: Fills in calls.
    backend: {type: python, target: "nowhere:Caller"}
    limits: {max_concurrency: 64}
skills:
  Acting:
    description: Takes a step.
    subskills:
      Step: {description: One step., procedure: {steps: [{ask: "{{ question }}"}]}}
"""
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def live(test: Callable[..., Any]) -> Callable[..., None]:
    """The test on an event loop of its own, for 20 seconds at most."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 20))

    return run


class Says:
    """A backend that says what a function of the prompt gives, after `wait` seconds; keeps the prompts."""

    def __init__(self, say: Callable[[str], str], wait: float = 0.0) -> None:
        self.say, self.wait, self.prompts, self.ended = say, wait, [], 0

    async def ask(self, request: Request) -> ExpertReply:
        self.prompts.append(request.prompt)
        try:
            await asyncio.sleep(self.wait)
        finally:
            self.ended += 1
        return ExpertReply(self.say(request.prompt), usage=Usage(7, 3, 0.0, 1))

    async def aclose(self) -> None:
        """Nothing is held."""


class Down:
    """A backend whose server is not there."""

    async def ask(self, request: Request) -> ExpertReply:
        raise ExpertFailure(Outcome.UNAVAILABLE, "connection refused")

    async def aclose(self) -> None:
        """Nothing is held."""


@asynccontextmanager
async def chat(tmp_path: Any, backend: Any, **settings: Any) -> AsyncIterator[Client]:
    """A running server whose only expert is `backend`; `settings` go to ChatServer."""
    path = tmp_path / "registry.yaml"
    path.write_text(REGISTRY)
    budget = Budget(2, 16384, 4096, 1024, 32768)
    async with ExpertPool(Registry.load(path), backends={"Caller": backend}) as pool:
        settings = {"policy": FixedPair("Caller", "Acting"), "budget": budget} | settings
        runner = web.AppRunner(ChatServer(pool=pool, **settings).application(), handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            async with ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as session:
                yield Client(session)
        finally:
            await runner.cleanup()


class Client:
    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def post(self, headers: dict[str, str] | None = None, **fields: Any) -> tuple[int, dict[str, Any]]:
        """Status and body of a completion; by default one user message and the tool `weather`."""
        body = {"model": "maestro", "messages": [user("Weather in Oslo?")], "tools": [WEATHER]} | fields
        async with self.session.post("/v1/chat/completions", json=body, headers=headers) as reply:
            return reply.status, await reply.json()

    async def step(self, **fields: Any) -> dict[str, Any]:
        """The assistant's message."""
        status, body = await self.post(**fields)
        assert status == 200, body
        return body["choices"][0]["message"]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}
