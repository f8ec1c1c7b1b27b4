"""verl's agent loop around our episode: token in, token out, observations masked.

One idea: this file only carries ids between verl's engine and the runner; every decision (parsing, budgets, stop
reasons) is the episode's, every delegation the pool's, every reward `rewards`'. A rollout that failed for want of
machinery comes back with an all-zero mask, so that nothing of it is trained on.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from experts.pool import ExpertPool
from orchestrator.budget import Budget
from orchestrator.encoding import PromptEncoder
from orchestrator.runner import run_episode
from orchestrator.seeds import derive_seed
from orchestrator.task import Task
from orchestrator.trajectory import Trajectory
from registry.prompt import system_prompt
from registry.registry import Registry
from rewards import Reward, reward
from rewards.verl_adapter import record
from train.engine_policy import EnginePolicy, PromptCache
from train.rollout_log import RolloutRecord
from train.rows import image_bytes, task_from_row


@dataclass(frozen=True)
class RolloutSettings:
    """What a rollout needs beyond verl's config; written by the launcher as one JSON file."""

    registry: tuple[str, ...]
    cache: str
    rollouts: str
    attempt: int
    seed: int
    prompt_style: str
    budget: dict[str, int]
    episode_seconds: float
    turn_seconds: float


class _Shared:
    """What all rollouts of a process share."""

    def __init__(self, settings: RolloutSettings, processor: Any) -> None:
        self.settings = settings
        self.registry = Registry.load(*settings.registry)
        self.pool = ExpertPool(self.registry, cache_dir=Path(settings.cache), default_deadline_s=settings.turn_seconds)
        self.budget = Budget(**settings.budget)
        style = settings.prompt_style
        self.system = None if style == "none" else system_prompt(self.registry, style, self.budget.horizon)  # type: ignore[arg-type]
        self.encoder = PromptEncoder(processor)
        self.prompts = PromptCache()
        self.tasks: dict[str, Task] = {}
        # Unbuffered and in append mode: every line reaches the file whole, also beside other workers.
        self.log = os.open(settings.rollouts, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def task(self, row: dict[str, Any]) -> Task:
        extra = row["extra_info"]
        key = str(extra.get("id") or f"{extra.get('split')}-{extra.get('index')}")
        if key not in self.tasks:
            if len(self.tasks) >= 2048:
                self.tasks.clear()
            self.tasks[key] = task_from_row(row, image_bytes(row["raw_prompt"]), f"row {key}")
        return self.tasks[key]


_shared: dict[str, _Shared] = {}


@lru_cache(maxsize=4)
def _settings(path: str) -> RolloutSettings:
    raw = json.loads(Path(path).read_text(encoding="utf-8"))
    return RolloutSettings(**{**raw, "registry": tuple(raw["registry"])})


class OrchestratorAgentLoop(AgentLoopBase):
    """One rollout of one row (verl builds one object a rollout)."""

    def __init__(self, *args: Any, settings_path: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if settings_path not in _shared:
            _shared[settings_path] = _Shared(_settings(settings_path), self.processor)
        self.shared = _shared[settings_path]

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        shared, settings = self.shared, self.shared.settings
        step, sample = int(kwargs.get("global_steps", -1)), int(kwargs.get("session_id", 0))
        split = str(kwargs["extra_info"].get("split", "train"))
        task = shared.task(kwargs)
        policy = EnginePolicy(
            self.server_manager, shared.encoder, shared.prompts, shared.system, sampling_params, uuid4().hex
        )
        # The step is part of the seed: a row that is met again in a later epoch is sampled anew.
        trajectory = await run_episode(
            task,
            policy,
            shared.pool,
            budget=shared.budget,
            seed=derive_seed("step", settings.seed, step),
            sample=sample,
            episode_deadline_s=settings.episode_seconds,
            turn_deadline_s=settings.turn_seconds,
        )
        result = reward(trajectory.to_json())
        line = self._record(trajectory, result, step, split, int(kwargs["extra_info"].get("index", -1)), sample).line()
        os.write(shared.log, line.encode("utf-8"))
        return self._output(trajectory, result, policy, list(shared.prompts.get(task, shared.encoder, shared.system).images))

    def _output(self, trajectory: Trajectory, result: Reward, policy: EnginePolicy, images: list[Any]) -> AgentLoopOutput:
        ids = list(trajectory.response_ids or ())
        mask = list(trajectory.response_mask or ())
        logprobs = list(trajectory.response_logprobs or [0.0] * len(ids))
        if not ids:  # verl cannot hold an empty response: one token that nothing is learned from
            ids, mask, logprobs = [self.tokenizer.eos_token_id], [0], [0.0]
        if not result.valid:
            mask = [0] * len(ids)
        calls = trajectory.counts["calls"]
        return AgentLoopOutput(
            prompt_ids=list(trajectory.prompt_ids or ()),
            response_ids=ids,
            response_mask=mask,
            response_logprobs=logprobs,
            multi_modal_data={"images": images} if images else {},
            reward_score=float(result.total or 0.0),
            num_turns=1 + len(trajectory.turns) + calls,
            metrics=AgentLoopMetrics(
                generate_sequences=trajectory.timings["policy_s"], tool_calls=trajectory.timings["expert_s"]
            ),
            extra_fields={
                **policy.engine_fields,
                "turn_scores": [],
                "tool_rewards": [],
                "reward_extra_info": dict(record(result)),
            },
        )

    def _record(
        self, trajectory: Trajectory, result: Reward, step: int, split: str, index: int, sample: int
    ) -> RolloutRecord:
        searches = [t["action"] for t in trajectory.turns if t["action"]["type"] == "search"]
        question = " ".join(trajectory.question.split())
        return RolloutRecord(
            step=step,
            attempt=self.shared.settings.attempt,
            split="train" if split == "train" else "validation",
            row=trajectory.row_id,
            index=index,
            sample=sample,
            group=trajectory.group,
            seed=trajectory.seed,
            valid=result.valid,
            reward=result.total,
            answer=result.answer,
            format=result.format if result.valid else None,
            stop=trajectory.stop,
            pairs=tuple(f"{s['expert']}@@{s['skill']}" for s in searches),
            copied=sum(" ".join(s["query"].split()) == question for s in searches),
            calls=len(searches),
            malformed=trajectory.counts["malformed"],
            policy_tokens=sum(trajectory.response_mask or ()),
            # one whole trajectory a group keeps the file small and every step readable
            trajectory=trajectory.to_json() if sample == 0 else None,
        )
