"""A stage for the agent loop: a scripted engine, a registry of one expert, a run folder that a rollout is played in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from omegaconf import OmegaConf
from PIL import Image
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, DictConfigWrap

from train import agent_loop
from train.agent_loop import OrchestratorAgentLoop
from train.config import TrainConfig
from train.grpo import write_job_files
from train.paths import RunPaths
from train.rollout_log import RolloutRecord, read_records

QUESTION = "How many circles are there?"
CALL = f"<search> Counter@@Counting_Skill: {QUESTION}</search>"
ANSWER = "<answer> 4</answer>"

# two engines: requests go through verl's manager
VERL = {
    "trainer": {"nnodes": 1, "n_gpus_per_node": 2},
    "actor_rollout_ref": {"rollout": {"tensor_model_parallel_size": 1}},
}
PROGRAM = """
import os
import tempfile

class Counter:
    def answer(self, prompt, pictures):
        if os.path.exists("DOWN") and len(os.listdir("DOWN")) < 10:
            tempfile.mkstemp(dir="DOWN")
            raise ConnectionError("nobody there")
        if "crash" in prompt:
            raise RuntimeError("broken pipe")
        return "4 <answer> 9 </answer>" if "tag" in prompt else "4"
"""
REGISTRY = """
experts:
  Counter:
    description: Counts.
    backend: {type: python, target: "MODULE:Counter"}
skills:
  Counting_Skill:
    description: How many.
    subskills:
      Count: {description: Counts., procedure: {steps: [{ask: "{{ question }}"}]}}
"""


class ScriptedEngine:
    """Emits its turns one after another, for every request anew; an exception is raised, None is an aborted request."""

    def __init__(self, tokenizer: Any, *turns: str | list[int] | Exception | None) -> None:
        self._tokenizer, self._turns = tokenizer, turns
        self.requests: list[dict[str, Any]] = []
        self._seen: dict[str, int] = {}

    def ids(self, turn: int) -> list[int]:
        said = self._turns[turn]
        assert said is not None and not isinstance(said, Exception)
        return said if isinstance(said, list) else self._tokenizer.encode(said, add_special_tokens=False)

    async def generate(
        self, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any], image_data: Any
    ) -> SimpleNamespace:
        turn = self._seen[request_id] = self._seen.get(request_id, -1) + 1
        self.requests.append({"id": request_id, "prompt": prompt_ids, "images": image_data, **sampling_params})
        said = self._turns[turn]
        if isinstance(said, Exception):
            raise said
        ids = [] if said is None else self.ids(turn)
        return SimpleNamespace(
            token_ids=ids, log_probs=[-0.5] * len(ids), stop_reason="aborted" if said is None else "completed",
            extra_fields={"global_steps": 3},
        )  # fmt: skip


class Stage:
    """One run folder with its registry; `play` runs one rollout on an engine."""

    def __init__(self, folder: Path, processor: Any, registry: Path, protocol: dict[str, Any]) -> None:
        self.paths, self.processor = RunPaths.at(folder), processor
        config = TrainConfig.model_validate(
            {"registry": [str(registry)], "seed": 11, "protocol": protocol, "watch": {"probe_seconds": 0.02}}
        )
        write_job_files(config, self.paths, 2)

    def engine(self, *turns: Any) -> ScriptedEngine:
        return ScriptedEngine(self.processor.tokenizer, *turns)

    def ids(self, text: str) -> list[int]:
        return self.processor.tokenizer.encode(text, add_special_tokens=False)

    def play(self, engine: ScriptedEngine, *, step: int = 1, sample: int = 0, **fields: Any) -> AgentLoopOutput:
        [output] = self.play_all(engine, step=step, samples=[sample], **fields)
        return output

    def play_all(
        self, engine: ScriptedEngine, *, step: int = 1, samples: Sequence[int], **fields: Any
    ) -> list[AgentLoopOutput]:
        extra = {"id": "r1", "index": 0, "split": "train", "question": QUESTION, "family": "shape_count"}
        image = {"type": "image", "image": Image.new("RGB", (96, 64), (200, 30, 30))}
        row = {
            "data_source": "embedded", "reward_model": {"style": "rule", "ground_truth": fields.pop("truth", "4")},
            "raw_prompt": [{"role": "user", "content": [fields.pop("image", image), {"type": "text", "text": "Q"}]}],
            "extra_info": {**extra, **fields},
        }  # fmt: skip

        async def run() -> list[AgentLoopOutput]:
            loop = OrchestratorAgentLoop(
                DictConfigWrap(OmegaConf.create(VERL)),
                engine, self.processor.tokenizer, self.processor, object, DictConfigWrap(OmegaConf.create({})),
                settings_path=str(self.paths.rollout_settings),
            )  # fmt: skip
            params = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "logprobs": True}
            try:
                runs = (loop.run(params, global_steps=step, session_id=sample, **row) for sample in samples)
                return await asyncio.gather(*runs)
            finally:
                await loop.shared.pool.aclose()
                self.forget()

        return asyncio.run(run())

    def forget(self) -> None:
        """What a new process would not know."""
        agent_loop._shared.clear()
        agent_loop._settings.cache_clear()

    def records(self) -> list[RolloutRecord]:
        return read_records(self.paths.rollouts)[0]
