"""A benchmark of a user's own, made in a folder: its YAML file, its rows, its pictures, and experts that answer."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from eval.config import EvalConfig

YAML = """
name: birds
title: Birds
licence: mine
id: id
question: question
answer: {columns: answer}
images: {columns: image}
groups: {place: {columns: place}, size: {columns: size}}
group: place
scorer: {official: chartqa_official, lenient: chartqa, source: made}
metrics: {by: [place, size], headline: macro, over: place}
"""

EXPERTS = '''
class Reader:
    """Gives the last word of the question."""

    def answer(self, prompt, pictures):
        return prompt.split()[-1]


class Liar:
    def answer(self, prompt, pictures):
        return "nothing"
'''

REGISTRY = """
experts:
  Reader:
    description: reads
    backend: {type: python, target: "experts_of_birds:Reader"}
  Liar:
    description: lies
    backend: {type: python, target: "experts_of_birds:Liar"}
skills:
  Reading:
    description: reading
    subskills:
      read: {description: reads, keywords: [say], procedure: {steps: [{ask: "{{ question }}"}]}}
"""

READER = {"reader": {"kind": "single_expert", "expert": "Reader", "skill": "Reading"}}


def row(number: int, **other: Any) -> dict[str, Any]:
    """Every third row's answer is written as only the lenient rule takes it."""
    said = "1,234" if number % 3 == 0 else "1234"
    made = {
        "id": f"{number:02d}",
        "question": f"say {said}",
        "answer": "1234",
        "image": "a.png",
        "place": "wood" if number % 2 else "lake",
        "size": "small",
    }
    return {key: value for key, value in (made | other).items() if value is not None}


class Birds:
    """The files in ``folder``."""

    def __init__(self, folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        self.folder, self.run = folder, folder / "run"
        (folder / "experts_of_birds.py").write_text(EXPERTS)
        (folder / "registry.yaml").write_text(REGISTRY)
        (folder / "birds.yaml").write_text(YAML)
        (folder / "data" / "images").mkdir(parents=True)
        buffer = io.BytesIO()
        Image.new("RGB", (64, 64), "white").save(buffer, "PNG")
        (folder / "data" / "images" / "a.png").write_bytes(buffer.getvalue())
        self.write(rows)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(one) + "\n" for one in rows)
        (self.folder / "data" / "samples.jsonl").write_text(text)

    def config(self, **settings: Any) -> EvalConfig:
        data = {"root": str(self.folder / "data"), **settings.pop("data", {})}
        whole = {
            "benchmark": str(self.folder / "birds.yaml"),
            "run": str(self.run),
            "arms": READER,
            "concurrency": 1,
            "expert_concurrency": 1,
        }
        return EvalConfig.model_validate(whole | {"data": data} | settings)


def stop_after(steps: int, phase: str) -> tuple[type[Exception], Callable[[str, int | None], Callable[[], None]]]:
    """What is raised, and a progress display that raises it after some steps of a phase."""

    class Stopped(Exception):
        pass

    def start(name: str, total: int | None) -> Callable[[], None]:
        left = [steps]

        def advance() -> None:
            left[0] -= 1
            if name == phase and left[0] == 0:
                raise Stopped

        return advance

    return Stopped, start
