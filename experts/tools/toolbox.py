"""The tools of a registry, ready for use: embedded programs in threads, served models through a client.

A tool's result depends on the tool, the picture and the arguments alone, so deterministic tools are
computed once, for whichever expert's procedure asks first.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from experts.cache import CallCache, content_key
from experts.caller import Ledger
from experts.clients.openai_backend import OpenAIExpertBackend
from experts.clients.python_backend import Program
from experts.images import Picture
from experts.outcome import ExpertFailure, Outcome
from experts.per_loop import PerLoop
from experts.request import Request
from experts.tools.result import ToolResult
from experts.workers import Workers
from registry.registry import Registry
from registry.schema import OpenAIBackend, Skill, Subskill, Tool


def tool_identity(tool: Tool) -> list[Any]:
    """What a tool's results depend on beside their input."""
    return [
        tool.name,
        tool.revision,
        tool.backend.model_dump(mode="json", exclude={"replicas", "api_key_env"}),
    ]


class _Bench:
    """One tool with its program or client."""

    def __init__(self, tool: Tool, workers: Workers) -> None:
        self.tool = tool
        self.turns = PerLoop(lambda: asyncio.Semaphore(tool.limits.max_concurrency))
        self.client: OpenAIExpertBackend | None = None
        self.program: Program | None = None
        if isinstance(tool.backend, OpenAIBackend):
            self.client = OpenAIExpertBackend(tool.backend, tool.limits)
        else:
            self.program = Program(tool.backend, "maestro.tools", workers)

    async def run(self, picture: Picture, args: dict[str, str], ledger: Ledger) -> ToolResult:
        timeout_s = self.tool.limits.timeout_s
        async with self.turns.get():
            if self.program is not None:
                result = await self.program.call(lambda program: program.run(picture, **args), timeout_s)
            else:
                assert self.client is not None
                prompt = args.get("prompt", self.tool.description)
                reply = await self.client.ask(Request(prompt, (picture,), timeout_s=timeout_s))
                ledger.usage += reply.usage
                result = ToolResult(reply.text)
        if not isinstance(result, ToolResult):
            raise ExpertFailure(Outcome.ERROR, f"run() gave {type(result).__name__}, not a ToolResult")
        return result


class Toolbox:
    """Uses tools by name. Safe to use from several event loops."""

    def __init__(self, registry: Registry, workers: Workers, cache: CallCache) -> None:
        self._registry = registry
        self._cache = cache
        self._benches = {tool.name: _Bench(tool, workers) for tool in registry.tools}
        self._digests: dict[tuple[str, str], str | None] = {}

    async def use(self, name: str, picture: Picture, args: dict[str, str], ledger: Ledger) -> ToolResult:
        """The tool's result; what a served one used goes into the ledger. Raises ExpertFailure."""
        bench = self._benches[self._registry.tool(name).name]
        tool = bench.tool

        async def compute() -> str:
            try:
                return _encode(await bench.run(picture, args, ledger), tool.limits.max_reply_bytes)
            except ExpertFailure as failure:
                failure.message = f"tool {tool.name!r}: {failure.message}"
                raise

        if not tool.deterministic:
            return _decode(await compute())
        key = content_key("tool", tool_identity(tool), picture.sha256, args)
        encoded, _ = await self._cache.once(key, compute, keep=lambda _: True)
        return _decode(encoded)

    def digest(self, skill: Skill, subskill: Subskill) -> str | None:
        """What a procedure does, its tools included; None when one of them is not deterministic."""
        name = (skill.name, subskill.name)
        if name not in self._digests:
            procedure = subskill.procedure
            steps = procedure.steps + (procedure.repair.steps if procedure.repair else ())
            tools = [self._registry.tool(step.tool) for step in steps if step.tool]
            content = [name, procedure.model_dump(mode="json"), [tool_identity(tool) for tool in tools]]
            fixed = all(tool.deterministic for tool in tools)
            self._digests[name] = content_key("procedure", *content) if fixed else None
        return self._digests[name]

    async def prepare(self) -> None:
        """Load what the first calls would load. Raises UserFault."""
        for bench in self._benches.values():
            if bench.program is not None:
                await asyncio.to_thread(bench.program.make)

    async def aclose(self) -> None:
        """Close the clients of served tools."""
        for bench in self._benches.values():
            if bench.client is not None:
                await bench.client.aclose()


def _encode(result: ToolResult, max_bytes: int) -> str:
    try:
        words = json.dumps({"text": result.text.encode("utf-8", "replace").decode(), "data": result.data})
    except (TypeError, ValueError, AttributeError) as error:
        raise ExpertFailure(Outcome.ERROR, f"text or data of the result is not JSON: {error}") from None
    if len(words) > max_bytes:
        raise ExpertFailure(Outcome.TOO_LONG, f"text and data are larger than {max_bytes} bytes")
    pictures = [
        [base64.b64encode(p.png).decode("ascii"), p.width, p.height, p.sha256, p.source, p.notes]
        for p in result.pictures
    ]
    return json.dumps([words, pictures])


def _decode(encoded: str) -> ToolResult:
    words, pictures = json.loads(encoded)
    content = json.loads(words)
    made = tuple(
        Picture(base64.b64decode(png), width, height, digest, source, tuple(notes))
        for png, width, height, digest, source, notes in pictures
    )
    return ToolResult(content["text"], content["data"], made)
