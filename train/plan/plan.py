"""`Plan`: memory, tokens, time and experts of one training config on given GPUs, with what does not fit and why.

One idea: a pure function of config, model shape, registry and device; printing is the command line's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from registry.prompt import system_prompt
from registry.registry import Registry, default_registry_path
from train.config import TrainConfig
from train.plan.advice import Suggestion, suggestions
from train.plan.architecture import Architecture
from train.plan.device import Device
from train.plan.experts import ExpertsNeed, experts_need
from train.plan.measured import Measured
from train.plan.memory import GpuMemory, memory_of_gpu, record, trained
from train.plan.paper import PAPER, implied_row
from train.plan.time import StepTime, assumptions, step_time
from train.plan.tokens import Budget, Usage, at_limits, budget_of, expected

CHARACTERS_A_TOKEN = 4.0  # English text with Qwen's tokenizer; for system prompts whose tokens nobody counted
# Seconds of a delegation: a whole answer of the trained system (paper, Figure 2), and the embedded experts' median.
PAPER_LATENCY, EMBEDDED_LATENCY = 2.88, 0.15


@dataclass(frozen=True)
class Wishes:
    """What the command line says beyond the config; None takes the assumption. gpus: GPUs that a node has."""

    gpus: int | None = None
    colocate: bool = False
    max_pixels: int | None = None
    image_size: tuple[int, int] = (1024, 768)
    usage: dict[str, float] = field(default_factory=dict)
    measured: Measured | None = None


@dataclass(frozen=True)
class Plan:
    """The whole of it. faults: what makes the run impossible; notes: what it will bear, but should be known."""

    config: TrainConfig
    shape: Architecture
    device: Device
    budget: Budget
    use: Usage
    memory: GpuMemory
    time: StepTime
    at_limits: StepTime
    experts: ExpertsNeed
    assumptions: tuple[str, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    suggestions: tuple[Suggestion, ...]
    measured: Measured | None
    paper_row: float | None  # tokens a row at which this estimate gives the paper's own time, on its own GPUs

    @property
    def fits(self) -> bool:
        return not self.faults

    def record(self) -> dict[str, Any]:
        """As plain data."""
        steps = self.config.grpo.steps
        compared = None
        if self.measured is not None:
            compared = {
                "run": self.measured.root,
                "steps": self.measured.steps,
                "parts": self.measured.against(self.time),
            }
        return {
            "fits": self.fits,
            "faults": list(self.faults),
            "notes": list(self.notes),
            "suggestions": [
                {"what": s.what, "set": list(s.changes), "peak_gib": round(s.peak, 1), "limit_gib": round(s.limit, 1)}
                for s in self.suggestions
            ],
            "gpus": {
                "kind": self.device.name,
                "memory_gib": self.device.memory_gib,
                "nodes": self.config.cluster.nodes,
                "a_node": self.config.cluster.gpus_per_node,
            },
            "model": {
                "source": self.shape.source,
                "parameters": self.shape.parameters,
                "trained": trained(self.config, self.shape),
                "vision_parameters": self.shape.vision.parameters if self.shape.vision else 0,
                "cached_numbers_a_token": self.shape.kv_per_token,
            },
            "tokens": {
                **vars(self.budget),
                "longest_row": self.budget.longest_row,
                "policy_after_full_observations": self.budget.policy_after_observations,
                "usage": vars(self.use),
            },
            "memory": record(self.memory),
            "time": {
                "expected": self.time.record(steps),
                "at_limits": self.at_limits.record(steps),
                "steps": steps,
                "paper": {
                    "step_seconds": round(PAPER.step, 1),
                    "run_hours": PAPER.seconds / 3600,
                    "tokens_a_row_for_it": round(self.paper_row) if self.paper_row else None,
                },
                "assumptions": list(self.assumptions),
            },
            "experts": self.experts.record(),
            "measured": compared,
        }


def make_plan(config: TrainConfig, shape: Architecture, device: Device, wishes: Wishes | None = None) -> Plan:
    """The plan. Raises UserFault for a registry that cannot be read; what does not fit stands in `faults`."""
    wishes = wishes or Wishes()
    registry = Registry.load(*(config.registry or (default_registry_path(),)))
    budget = budget_of(config, shape, _system_tokens(config, registry), wishes.image_size, wishes.max_pixels)
    memory = memory_of_gpu(config, shape, budget, device)
    nodes_gpus = wishes.gpus or config.cluster.gpus_per_node
    need = experts_need(registry, device, config.cluster.gpus_per_node, memory.room)
    latency = EMBEDDED_LATENCY if device.is_cpu else PAPER_LATENCY
    use = expected(config, budget, latency)
    if wishes.measured is not None:
        use = wishes.measured.usage(use)
    if wishes.usage:
        use = replace(use, **wishes.usage, source="as given" if wishes.measured is None else use.source + ", and given")
    full = at_limits(budget, use.latency)

    def timed(used: Usage) -> StepTime:
        return step_time(config, shape, budget, used, memory, device, need.concurrency, config.data.validation_rows)

    time, limits = timed(use), timed(full)
    faults = [
        *memory.faults,
        *_token_faults(config, shape, budget),
        *_gpu_faults(config, shape, need, nodes_gpus, wishes.colocate),
    ]

    def evaluate(changed: TrainConfig) -> GpuMemory:
        rows = budget_of(changed, shape, budget.system, wishes.image_size, wishes.max_pixels)
        return memory_of_gpu(changed, shape, rows, device)

    return Plan(
        config, shape, device, budget, use, memory, time, limits, need,
        tuple(assumptions(config, device, use, need.concurrency)), tuple(faults),
        tuple(_notes(config, budget, memory, time, need, nodes_gpus)),
        suggestions(config, evaluate) if memory.faults else (), wishes.measured,
        implied_row(lambda used: timed(used).total, use, full) if _as_in_the_paper(config, device) else None,
    )  # fmt: skip


def _as_in_the_paper(config: TrainConfig, device: Device) -> bool:
    gpus, rows = config.cluster.nodes * config.cluster.gpus_per_node, config.grpo.prompts * config.grpo.samples
    return (device.name, gpus, rows) == (PAPER.gpu, PAPER.gpus, PAPER.rollouts)


def _system_tokens(config: TrainConfig, registry: Registry) -> int:
    style = config.protocol.prompt_style
    if style == "none":
        return 0
    return round(len(system_prompt(registry, style, config.protocol.horizon)) / CHARACTERS_A_TOKEN)


def _token_faults(config: TrainConfig, shape: Architecture, budget: Budget) -> list[str]:
    faults = []
    if budget.longest_row > shape.context:
        faults.append(f"a row may have {budget.longest_row} tokens, and the model's context holds {shape.context}")
    if budget.system >= budget.prompt:
        faults.append(
            f"the system prompt alone takes about {budget.system} of protocol.max_prompt_tokens={budget.prompt}"
        )
    elif shape.vision is not None and not budget.fitting_pixels:
        faults.append(
            f"no picture fits: about {budget.system} tokens of system prompt and a question fill "
            f"protocol.max_prompt_tokens={budget.prompt}"
        )
    if shape.heads % config.engine.tensor_parallel:
        faults.append(
            f"engine.tensor_parallel={config.engine.tensor_parallel} does not divide the model's {shape.heads} heads"
        )
    return faults


def _gpu_faults(config: TrainConfig, shape: Architecture, need: ExpertsNeed, gpus: int, colocate: bool) -> list[str]:
    asked = config.cluster.gpus_per_node
    if asked > gpus:
        return [f"cluster.gpus_per_node={asked}, and a node has {gpus}: set cluster.gpus_per_node={gpus}"]
    if not need.models:
        return []
    if colocate and not need.beside:
        return [f"the experts need {need.total_gib:.0f} GiB and do not fit beside the training: give them own GPUs"]
    left = (gpus - asked) * config.cluster.nodes
    if left and not colocate and (need.own_gpus is None or need.own_gpus > left):
        return [f"the experts need {need.own_gpus or 'more than 16'} GPUs of their own, and {left} are left for them"]
    return []


def _notes(
    config: TrainConfig, budget: Budget, memory: GpuMemory, time: StepTime, need: ExpertsNeed, gpus: int
) -> list[str]:
    notes = []
    if budget.room_for_text is not None and budget.room_for_text < min(100, budget.prompt // 4):
        notes.append(
            f"a picture at the processor's limit takes {budget.image_limit} tokens, more than max_prompt_tokens="
            f"{budget.prompt} leaves: shrink pictures to {budget.fitting_pixels} pixels (height x width), or such rows "
            "are refused"
        )
    if budget.full_observations < budget.horizon:
        notes.append(
            f"of {budget.horizon} delegations only {budget.full_observations} can answer at full length "
            f"({budget.observation} tokens) within max_trajectory_tokens={budget.trajectory}"
        )
    elif budget.policy_after_observations < (budget.horizon + 1) * 16:
        notes.append(f"{budget.horizon} full observations leave the policy {budget.policy_after_observations} tokens")
    engines = max(1, config.cluster.nodes * config.cluster.gpus_per_node // config.engine.tensor_parallel)
    rows = config.grpo.prompts * config.grpo.samples / engines
    if time.slots < int(rows):
        notes.append(f"an engine samples {time.slots} of its {rows:.0f} sequences at once; the others wait for cache")
    if need.models and config.platform != "cpu":
        own = f"{need.own_gpus} GPU(s) of this kind" if need.own_gpus else "more than 16 GPUs of this kind"
        beside = "also fit" if need.beside else "do not fit"
        left = (gpus - config.cluster.gpus_per_node) * config.cluster.nodes
        where = f"; {left} beside the training's are there" if left else ""
        notes.append(f"the experts need {own} of their own{where}, and {beside} beside the training")
    elif need.note and not need.models and need.own_gpus is None:
        notes.append(need.note)
    if memory.host_gib:
        notes.append(f"engine.offload keeps {memory.host_gib:.0f} GiB in each node's own memory")
    return notes


def refusal(plan: Plan, where: Path) -> UserFault:
    """The one message for a plan that does not fit, with the nearest settings that do."""
    ways = "; or ".join(f"{' '.join(s.changes)} ({s.what}: {s.peak:.1f} GiB)" for s in plan.suggestions)
    what = "the plan does not fit: " + "; ".join(plan.faults)
    fix = f"set {ways}" if ways else "change what is named above, or use larger GPUs (--gpu, --gpu-memory)"
    return UserFault(what, where=str(where), fix=fix)
