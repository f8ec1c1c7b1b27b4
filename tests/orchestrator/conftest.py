"""Small doubles: toy tokenizers, a scripted policy, a scripted pool, a registry of two experts and two skills."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from experts.images import Picture, load_picture
from experts.outcome import Delegation, Outcome
from orchestrator.episode import Episode
from orchestrator.policy import PolicyTurn
from orchestrator.task import Task
from registry.registry import Registry

REGISTRY = """
experts:
  Chart-Reader:
    description: Reads bar charts and their labels.
    backend: {type: python, target: "nowhere:Reader"}
  Shape-Spotter:
    aliases: [Spotter]
    description: Counts filled shapes and tells colours.
    backend: {type: python, target: "nowhere:Spotter"}
skills:
  Chart_Solver:
    description: Questions about charts.
    subskills:
      Reading:
        description: Read a value.
        keywords: [bar, how high]
        procedure: {steps: [{ask: "{{ question }}"}]}
  Counting_Solver:
    description: Questions about numbers of things.
    subskills:
      Counting:
        description: Count things.
        keywords: [how many, count]
        procedure: {steps: [{ask: "{{ question }}"}]}
"""


class ByteTokenizer:
    """One token for each UTF-8 byte."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode("utf-8", "replace")


class PieceTokenizer:
    """Takes the longest listed piece (ids 0, 1, ...), else one character (id 1000 + code point). Counts its work."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)
        self.encoded: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.encoded.append(text)
        ids: list[int] = []
        while text:
            piece = max((p for p in self.pieces if text.startswith(p)), key=len, default=text[0])
            ids.append(self.pieces.index(piece) if piece in self.pieces else 1000 + ord(piece))
            text = text[len(piece) :]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.pieces[i] if i < 1000 else chr(i - 1000) for i in ids)


class ScriptedPolicy:
    """Says its lines in turn; a line may be a text, a PolicyTurn, an exception to raise or seconds to sleep."""

    name = "scripted"

    def __init__(self, *lines: str | PolicyTurn | Exception | float) -> None:
        self.lines = lines
        self.seeds: list[int] = []

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        self.seeds.append(seed)
        line = self.lines[min(len(episode.turns), len(self.lines) - 1)]
        if isinstance(line, Exception):
            raise line
        if isinstance(line, float):
            await asyncio.sleep(line)
            return PolicyTurn("<answer> late </answer>")
        return line if isinstance(line, PolicyTurn) else PolicyTurn(str(line))

    async def aclose(self) -> None:
        """Holds nothing."""


class ScriptedPool:
    """Carries out delegations by a function; by default every expert says 42."""

    def __init__(self, registry: Registry, reply: Callable[[str, str, str], Any] = lambda e, s, q: "42") -> None:
        self.registry = registry
        self.reply = reply
        self.calls: list[tuple[str, str, str]] = []

    async def delegate(
        self, expert: str, skill: str, question: str, pictures: Sequence[Picture], *, deadline_s: float | None = None
    ) -> Delegation:
        self.calls.append((expert, skill, question))
        said = self.reply(expert, skill, question)
        if isinstance(said, Awaitable):
            said = await said
        if isinstance(said, Delegation):
            return said
        return Delegation(Outcome.OK, said, expert, skill, subskill="Reading", reason="only")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    path: Path = tmp_path_factory.mktemp("registry") / "registry.yaml"
    path.write_text(REGISTRY, encoding="utf-8")
    return Registry.load(path)


@pytest.fixture
def byte_tokenizer() -> ByteTokenizer:
    return ByteTokenizer()


@pytest.fixture
def piece_tokenizer() -> type[PieceTokenizer]:
    return PieceTokenizer


@pytest.fixture
def scripted() -> type[ScriptedPolicy]:
    return ScriptedPolicy


@pytest.fixture
def pool_of(registry: Registry) -> Callable[..., ScriptedPool]:
    return lambda *reply: ScriptedPool(registry, *reply)


@pytest.fixture(scope="session")
def picture() -> Picture:
    return load_picture(Image.new("RGB", (64, 48), (200, 30, 30)))


@pytest.fixture
def task_of(picture: Picture) -> Callable[..., Task]:
    def _task(question: str = "How many circles are there?", row: str = "row-1", **fields: Any) -> Task:
        return Task(row, "embedded", "shapes", question, (picture,), **{"ground_truth": "42", **fields})

    return _task
