"""verl's agent loop around our episode: token in, token out, observations masked.

One idea: this file only carries ids between verl's engine and the runner; every decision (parsing, budgets, stop
reasons) is the episode's, every delegation the pool's, every reward `rewards`'. A rollout that failed for want of
machinery comes back with an all-zero mask, so that nothing of it is trained on.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from experts.pool import ExpertPool
from orchestrator.budget import Budget
from orchestrator.encoding import PromptEncoder
from orchestrator.episode import Episode, StopReason, fail
from orchestrator.runner import run_episode
from orchestrator.seeds import derive_seed
from orchestrator.task import Task
from orchestrator.trajectory import Trajectory, from_episode
from orchestrator.turn_frame import frame_of
from registry.errors import UserFault
from registry.prompt import system_prompt
from registry.registry import Registry
from rewards import Reward, RewardRule, reward
from rewards.verl_adapter import record
from train.engine_client import EngineClient
from train.engine_policy import EnginePolicy, PromptCache
from train.outage import OutageGate
from train.requeue import MACHINERY, ROW, row_name
from train.rollout_log import RolloutRecord, details
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
    image_roots: tuple[str, ...] = ()
    endpoints: str | None = None
    reward: dict[str, Any] = field(default_factory=dict)
    observations: str = "inline"
    pauses: str | None = None
    pause_above: float = 0.5
    pause_seconds: float = 1800.0
    probe_seconds: float = 5.0


class _Shared:
    """What all rollouts of a process share."""

    def __init__(self, settings: RolloutSettings, processor: Any) -> None:
        self.settings = settings
        self.registry = Registry.load(*settings.registry)
        self.pool = ExpertPool(
            self.registry,
            cache_dir=Path(settings.cache),
            default_deadline_s=settings.turn_seconds,
            endpoints=None if settings.endpoints is None else Path(settings.endpoints),
        )
        self.budget = Budget(**settings.budget)
        self.rule = RewardRule(**settings.reward)
        style = settings.prompt_style
        self.system = None if style == "none" else system_prompt(self.registry, style, self.budget.horizon)  # type: ignore[arg-type]
        self.encoder = PromptEncoder(processor)
        self.frame = frame_of(processor) if settings.observations == "chat" else None
        self.engine: EngineClient | None = None
        self.gate = OutageGate(
            Path(settings.pauses or Path(settings.rollouts).parent / "pauses"),
            above=settings.pause_above,
            patience_s=settings.pause_seconds,
            probe_s=settings.probe_seconds,
        )
        self.prompts = PromptCache()
        self.tasks: dict[tuple[str, ...], Task] = {}
        # Unbuffered and in append mode: every line reaches the file whole, also beside other workers.
        self.log = os.open(settings.rollouts, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        size = os.fstat(self.log).st_size
        if size and os.pread(self.log, 1, size - 1) != b"\n":
            os.write(self.log, b"\n")  # a killed run left half a line: it must not swallow the next one

    def task(self, row: dict[str, Any]) -> Task:
        """The task of a row, worked out once for all samples of it. Raises UserFault where the row is broken."""
        key = row_name(row)
        if key not in self.tasks:
            if len(self.tasks) >= 2048:
                self.tasks.clear()
            roots = [Path(root) for root in self.settings.image_roots]
            self.tasks[key] = task_from_row(row, image_bytes(row["raw_prompt"]), f"row {'/'.join(key)}", roots)
        return self.tasks[key]


_shared: dict[str, _Shared] = {}


@lru_cache(maxsize=4)
def _settings(path: str) -> RolloutSettings:
    raw = json.loads(Path(path).read_text(encoding="utf-8"))
    fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in raw.items()}
    return RolloutSettings(**fields)


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
        # The step is part of the seed: a row that is met again in a later epoch is sampled anew.
        seed = derive_seed("step", settings.seed, step)
        policies: list[EnginePolicy] = []

        async def play(task: Task) -> Trajectory:
            policies.append(self._policy(sampling_params))  # played again, it is another conversation with the engine
            return await run_episode(
                task,
                policies[-1],
                shared.pool,
                budget=shared.budget,
                seed=seed,
                sample=sample,
                episode_deadline_s=settings.episode_seconds,
                turn_deadline_s=settings.turn_seconds,
            )

        paused_s = shared.gate.paused_s
        try:
            trajectory = await shared.gate.play(partial(play, shared.task(kwargs)))
            result = _graded(trajectory, shared.rule)
            broken = trajectory.valid or trajectory.stop == StopReason.OVERLONG_PROMPT  # no grade for what went well
        except UserFault as fault:
            policies.append(self._policy(sampling_params))
            trajectory = _unplayed(kwargs, shared.budget, policies[-1].name, seed, sample, fault)
            result, broken = _graded(trajectory, shared.rule), True
        index = int(kwargs["extra_info"].get("index", -1))
        waited = shared.gate.paused_s - paused_s
        line = self._record(trajectory, result, step, split, index, sample, waited).line()
        os.write(shared.log, line.encode("utf-8"))
        output = self._output(trajectory, result, policies[-1], kwargs)
        output.extra_fields["fault"] = "" if result.valid else ROW if broken else MACHINERY
        return output

    def _policy(self, sampling_params: dict[str, Any]) -> EnginePolicy:
        shared = self.shared
        return EnginePolicy(
            self._engine(), shared.encoder, shared.prompts, shared.system, sampling_params, uuid4().hex, shared.frame
        )

    def _engine(self) -> EngineClient:
        if self.shared.engine is None:
            trainer, rollout = self.config.trainer, self.rollout_config
            replicas = trainer.nnodes * trainer.n_gpus_per_node // rollout.tensor_model_parallel_size
            self.shared.engine = EngineClient(self.server_manager, replicas)
        return self.shared.engine

    def _output(
        self, trajectory: Trajectory, result: Reward, policy: EnginePolicy, row: dict[str, Any]
    ) -> AgentLoopOutput:
        filler = self.shared.encoder.processor.tokenizer.eos_token_id  # verl cannot hold an empty prompt or response
        prompt, ids = list(trajectory.prompt_ids or ()), list(trajectory.response_ids or ())
        mask = list(trajectory.response_mask or ())
        logprobs = list(trajectory.response_logprobs or [0.0] * len(ids))
        images: list[Any] = []
        if 0 < len(prompt) <= self.shared.budget.max_prompt_tokens:
            images = list(
                self.shared.prompts.get(self.shared.task(row), self.shared.encoder, self.shared.system).images
            )
        else:
            prompt = [filler]  # nothing was sampled from it
        if not ids or policy.forbidden_ids.intersection(ids):  # a sampled placeholder has no pixels behind it
            ids, mask, logprobs = [filler], [0], [0.0]
        if not result.valid:
            mask = [0] * len(ids)
        calls = trajectory.counts["calls"]
        return AgentLoopOutput(
            prompt_ids=prompt,
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
        self, trajectory: Trajectory, result: Reward, step: int, split: str, index: int, sample: int, waited: float
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
            **details(trajectory, waited),
        )


def _graded(trajectory: Trajectory, rule: RewardRule) -> Reward:
    """The trajectory's reward; a row that cannot be graded (no gold answer) costs this rollout, not the step."""
    try:
        return reward(trajectory.to_json(), rule)
    except ValueError as fault:
        return Reward(None, -1.0, None, False, f"not graded: {fault}", prediction=trajectory.answer)


def _unplayed(row: dict[str, Any], budget: Budget, policy: str, seed: int, sample: int, fault: UserFault) -> Trajectory:
    """The record of a rollout that could not start because its row is broken."""
    name = "/".join(row_name(row))
    extra = row["extra_info"]
    task = Task(name, str(row.get("data_source")), str(extra.get("family") or ""), str(extra.get("question") or ""), ())
    episode = fail(Episode(name, None, budget, task=task), StopReason.INFRASTRUCTURE, str(fault))
    return from_episode(episode, policy=policy, seed=seed, sample=sample)
