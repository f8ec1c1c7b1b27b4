"""Doubles for tests of delegations: a scripted backend, small programs, and parts of a registry."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image

from experts.images import Picture, load_picture
from experts.outcome import Delegation, ExpertReply, Usage
from experts.pool import ExpertPool
from experts.request import Request
from registry.registry import Registry
from registry.schema import Expert, Skill, Tool

PICTURE = load_picture(Image.new("RGB", (60, 60), (1, 2, 3)))
OTHER = load_picture(Image.new("RGB", (60, 60), (9, 9, 9)))

PROGRAMS = '''
import time
import experts.tools.result as result

calls = []

class Echo:
    def __init__(self, prefix=""):
        self.prefix = prefix
    def answer(self, prompt, pictures):
        calls.append(prompt)
        return self.prefix + prompt

class Odd:
    """Does what the prompt says."""
    def answer(self, prompt, pictures):
        calls.append(prompt)
        if prompt.startswith("sleep"):
            time.sleep(3)
        if prompt.startswith("raise"):
            raise ValueError("no such bar")
        if prompt.startswith("huge"):
            return "x" * 50_000_000
        return {"none": None, "empty": " ", "number": 7, "surrogate": "a\\ud800b"}.get(prompt, prompt)

class Broken:
    def __init__(self):
        raise RuntimeError("weights missing")
    def answer(self, prompt, pictures): ...

class Reader:
    def run(self, picture, **args):
        calls.append(("run", picture.width, args))
        return result.ToolResult("seen", {"width": picture.width}, (picture.crop((0, 0, 40, 40)),))

class Careless:
    def run(self, picture, **args):
        given = {
            "dict": args,
            "set": result.ToolResult("x", {1, 2}),
            "huge": result.ToolResult("x" * 300_000),
        }
        return given[args["give"]]
'''


def calls_of(module: str) -> list[Any]:
    return importlib.import_module(module).calls


def expert(name: str, target: str = "nowhere:Nothing", **fields: Any) -> Expert:
    backend = {"type": "python", "target": target, "options": fields.pop("options", {})}
    return Expert(name=name, description="d", backend=backend, **fields)  # type: ignore[arg-type]


def skill(name: str = "Charts", routing: str = "auto", **procedures: Any) -> Skill:
    """A skill whose subskills are given by keyword: each has its own name as its keyword."""
    subskills = [
        {
            "name": sub,
            "description": "d",
            "keywords": [sub],
            "procedure": value if isinstance(value, dict) else {"steps": value},
        }
        for sub, value in (procedures or {"bar": [{"ask": "{{ question }}"}]}).items()
    ]
    return Skill(name=name, description="d", routing=routing, subskills=subskills)  # type: ignore[arg-type]


class Scripted:
    """A backend that does what its function says."""

    def __init__(self, act: Callable[[Request], Any]) -> None:
        self.act = act
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> ExpertReply:
        self.requests.append(request)
        reply = self.act(request)
        if isinstance(reply, float):
            await asyncio.sleep(reply)
            return ExpertReply("late")
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, ExpertReply) else ExpertReply(reply, usage=Usage(100, 10, calls=1))

    async def aclose(self) -> None: ...


def delegate(
    registry: Registry,
    question: str = "How high is the bar?",
    *,
    name: str = "Reader",
    under: str = "Charts",
    pictures: Sequence[Picture] = (PICTURE,),
    deadline_s: float | None = None,
    **options: Any,
) -> Delegation:
    async def main() -> Delegation:
        async with ExpertPool(registry, **options) as pool:
            return await pool.delegate(name, under, question, pictures, deadline_s=deadline_s)

    return asyncio.run(main())


def scripted(
    act: Callable[[Request], Any], question: str = "How high is the bar?", **options: Any
) -> Delegation:
    fields = options.pop("expert", {})
    registry = Registry((expert("Reader", **fields),), (options.pop("skill", skill()),))
    return delegate(registry, question, backends={"Reader": Scripted(act)}, **options)


def tool(target: str, **fields: Any) -> Tool:
    return Tool(name="reader", description="d", backend={"type": "python", "target": target}, **fields)  # type: ignore[arg-type]


CLASSIFIED = {"bar": [{"ask": "as bar"}], "line": [{"ask": "as line"}]}
