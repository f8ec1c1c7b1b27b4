"""HR-Bench rows made in a folder, and an expert that answers with the last word of the question."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from eval.config import EvalConfig
from eval.run import Evaluation, evaluate
from registry.registry import Registry

EXPERT = '''
class Parrot:
    """Says the last word of the question, and counts how often it was asked."""

    asked = 0

    def answer(self, prompt, pictures):
        Parrot.asked += 1
        return prompt.split("\\n")[0].split()[-1]
'''
REGISTRY = """
experts:
  Parrot: {description: says, backend: {type: python, target: "parrot_of_kites:Parrot"}}
skills:
  Saying:
    description: saying
    subskills:
      say: {description: says, keywords: [say], procedure: {steps: [{ask: "{{ question }}"}]}}
"""
WORDS = ("B", "D", "grassy", "skyish")


class Kites:
    """HR-Bench rows in a folder, a word each that will be the answer: B is right; what is no letter the rule cannot
    read."""

    def __init__(self, folder: Path, words: Sequence[str] = WORDS) -> None:
        self.folder, self.run = folder, folder / "run"
        buffer = io.BytesIO()
        Image.new("RGB", (64, 48), "white").save(buffer, "PNG")
        picture = base64.b64encode(buffer.getvalue()).decode()
        head = "index\tquestion\tanswer\tcategory\tA\tB\tC\tD\tcycle_category\timage\n"
        rows = [f"{i}\tsay {word}\tB\tsingle\tone\ttwo\tthree\tfour\t{i}\t{picture}" for i, word in enumerate(words)]
        (folder / "hr_bench_4k.tsv").write_text(head + "\n".join(rows) + "\n")
        (folder / "parrot_of_kites.py").write_text(EXPERT)
        (folder / "registry.yaml").write_text(REGISTRY)

    def start(self, url: str | None, *, run: Path | None = None, retry: bool = False) -> Evaluation:
        settings = {
            "benchmark": "hrbench4k",
            "run": str(run or self.run),
            "arms": {"parrot": {"kind": "single_expert", "expert": "Parrot", "skill": "Saying"}},
            "data": {"root": str(self.folder)},
            "expert_concurrency": 1,
            **({} if url is None else {"judge": {"server": url, "model": "m", "timeout_s": 5}}),
        }
        registry = Registry.load(self.folder / "registry.yaml")
        config = EvalConfig.model_validate(settings)
        return asyncio.run(evaluate(config, registry, run or self.run, retry_errors=retry))

    @property
    def asked(self) -> int:
        import parrot_of_kites  # pyright: ignore[reportMissingImports]

        return parrot_of_kites.Parrot.asked
