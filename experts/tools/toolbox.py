"""The tools of a registry, ready for use: embedded programs in threads, served models through a client.

A tool's result depends on the tool, the picture and the arguments alone, so deterministic tools are
computed once, for whichever expert's procedure asks first.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Any

from experts.cache import CallCache, content_key
from experts.caller import Ledger
from experts.clients.openai_backend import OpenAIExpertBackend
from experts.clients.python_backend import Program
from experts.clients.tally import Tally
from experts.images import Picture
from experts.outcome import ExpertFailure, Outcome, Usage
from experts.tools.prompts import prompt_of
from experts.tools.result import ToolResult
from experts.tools.served import ServedTool
from experts.turns import Turns
from experts.workers import Workers
from registry.registry import Registry
from registry.schema import OpenAIBackend, Skill, Subskill, Tool


def tool_identity(tool: Tool) -> list[Any]:
    """What a tool's results depend on beside their input."""
    identity: list[Any] = [
        tool.name,
        tool.revision,
        tool.backend.model_dump(mode="json", exclude={"replicas", "api_key_env"}),
    ]
    if isinstance(tool.backend, OpenAIBackend):
        reading = {"reads", "box_format", "resize", "max_boxes", "zoom_rounds"}
        identity += [prompt_of(tool)[0], tool.model_dump(mode="json", include=reading), tool.limits.max_output_tokens]
    return identity


class _Bench:
    """One tool with its program or client."""

    def __init__(self, tool: Tool, workers: Workers) -> None:
        self.tool = tool
        self.client: OpenAIExpertBackend | None = None
        self.served: ServedTool | None = None
        self.program: Program | None = None
        self._tally = Tally()
        if isinstance(tool.backend, OpenAIBackend):
            self.client = OpenAIExpertBackend(tool.backend, tool.limits)
            self.served = ServedTool(tool, self.client)
        else:
            self.program = Program(tool.backend, "maestro.tools", workers)
        self._turns = Turns(tool.limits.max_concurrency, self._tally, self.client)

    async def run(self, picture: Picture | None, args: dict[str, str], ledger: Ledger) -> ToolResult:
        """The result as soon as the tool has room for one more call. Raises ExpertFailure, at once where no server of
        it takes requests."""
        asks = picture is not None and self.served is not None and self.served.asks(args)
        async with self._turns.take(needs_server=asks):
            return await self._counted(picture, args, ledger)

    def status(self) -> dict[str, Any]:
        """Plain data: `Tally.status`, and the state of each server (none for an embedded program)."""
        replicas = [] if self.client is None else self.client.status()
        return {"backend": self.tool.backend.type, "replicas": replicas, **self._tally.status()}

    async def _counted(self, picture: Picture | None, args: dict[str, str], ledger: Ledger) -> ToolResult:
        """The result, entered into the tally however the call ends."""
        started, before, ended = time.monotonic(), ledger.usage, "given_up"
        try:
            result = await self._result(picture, args, ledger)
            ended = Outcome.OK.value
            return result
        except ExpertFailure as failure:
            ended = failure.outcome.value
            raise
        finally:
            used = Usage(
                ledger.usage.prompt_tokens - before.prompt_tokens,
                ledger.usage.completion_tokens - before.completion_tokens,
            )
            self._tally.ended(ended, time.monotonic() - started, used)

    async def _result(self, picture: Picture | None, args: dict[str, str], ledger: Ledger) -> ToolResult:
        def run(program: Any) -> Any:
            if picture is None and getattr(program, "needs_picture", True):
                raise _no_picture(self.tool.name)
            return program.run(picture, **args)

        if self.program is not None:
            result = await self.program.call(run, self.tool.limits.timeout_s)
        elif picture is None:
            raise _no_picture(self.tool.name)
        else:
            assert self.served is not None
            result = await self.served.run(picture, args, ledger)
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

    async def use(self, name: str, picture: Picture | None, args: dict[str, str], ledger: Ledger) -> ToolResult:
        """The tool's result; what a served one used goes into the ledger. Raises ExpertFailure."""
        bench = self._benches[self._registry.tool(name).name]
        tool = bench.tool

        async def compute() -> str:
            try:
                return _encode(await bench.run(picture, args, ledger), tool.limits.max_reply_bytes)
            except ExpertFailure as failure:
                failure.message = f"tool {tool.name!r}: {failure.message}"
                raise

        if tool.deterministic:
            key = content_key("tool", tool_identity(tool), picture and picture.sha256, args)
            encoded, _ = await self._cache.once(key, compute, keep=lambda _: True)
        else:
            encoded = await compute()
        result = _decode(encoded)
        for note in result.notes:
            ledger.note(f"tool {tool.name!r}: {note}")
        return result

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

    def status(self) -> dict[str, dict[str, Any]]:
        """How each tool does, by name, as plain data; results from the cache are not counted."""
        return {name: bench.status() for name, bench in self._benches.items()}

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


def _no_picture(tool: str) -> ExpertFailure:
    shown = f"There is no picture, and the tool {tool} of this skill needs one."
    return ExpertFailure(Outcome.REFUSED, "it needs a picture; there is none", attempts=0, shown=shown)


def _encode(result: ToolResult, max_bytes: int) -> str:
    try:
        content = {"text": str.__str__(result.text), "data": result.data, "notes": list(result.notes)}
        # Lone surrogates cannot be written into any prompt, so they go here, wherever they stand.
        words = json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise ExpertFailure(Outcome.ERROR, f"text or data of the result is not JSON: {error}") from None
    if len(words) > max_bytes:
        raise ExpertFailure(Outcome.TOO_LONG, f"text and data are larger than {max_bytes} bytes")
    pictures = [
        [base64.b64encode(p.png).decode("ascii"), p.width, p.height, p.sha256, p.source, p.notes]
        for p in result.pictures
    ]
    return json.dumps([words.decode(), pictures])


def _decode(encoded: str) -> ToolResult:
    words, pictures = json.loads(encoded)
    content = json.loads(words)
    made = tuple(
        Picture(base64.b64decode(png), width, height, digest, source, tuple(notes))
        for png, width, height, digest, source, notes in pictures
    )
    return ToolResult(content["text"], content["data"], made, tuple(content.get("notes", ())))
