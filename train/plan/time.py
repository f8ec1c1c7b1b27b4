"""`StepTime`: seconds of one GRPO step and of the whole run, part by part.

One idea: work over speed. Reading (prompts, observations) and learning are bound by arithmetic, sampling by memory and
by the host, delegations by the experts; parts follow one another, which is the cautious sum: verl lets one episode
sample while another waits for an expert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from train.config import TrainConfig
from train.plan.architecture import Architecture
from train.plan.device import Device
from train.plan.memory import GpuMemory, trained, world
from train.plan.tokens import Budget, Usage

PADDING = 1.2  # rows in one pass that are padded to the longest: sdpa only


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step. `validation` and `checkpoint` are those of a run, spread over its steps."""

    prefill: float
    decode: float
    experts: float
    log_probs: float
    update: float
    sync: float
    fixed: float
    validation: float
    checkpoint: float
    tflop: float
    tokens: float
    slots: int

    @property
    def rollout(self) -> float:
        return self.prefill + self.decode + self.experts

    @property
    def step(self) -> float:
        """Without validation and checkpoints."""
        return self.rollout + self.log_probs + self.update + self.sync + self.fixed

    @property
    def total(self) -> float:
        return self.step + self.validation + self.checkpoint

    def record(self, steps: int) -> dict[str, Any]:
        """As plain data."""
        seconds = {
            name: round(getattr(self, name), 3)
            for name in (
                "prefill", "decode", "experts", "log_probs", "update", "sync", "fixed", "validation", "checkpoint",
            )
        }  # fmt: skip
        return {
            "step_seconds": round(self.total, 2),
            "run_hours": round(self.total * steps / 3600, 2),
            "seconds": seconds,
            "tokens_a_step": round(self.tokens),
            "tflop_a_step": round(self.tflop, 3),
            "sequences_at_once": self.slots,
        }


def step_time(
    config: TrainConfig,
    shape: Architecture,
    budget: Budget,
    use: Usage,
    memory: GpuMemory,
    device: Device,
    expert_concurrency: int,
    validation_rows: int,
) -> StepTime:
    """The estimate for episodes that use `use`. expert_concurrency: delegations that all experts take at once."""
    g = config.grpo
    gpus = config.cluster.nodes * config.cluster.gpus_per_node
    rows = g.prompts * g.samples
    prefill, decode, experts, slots = _rollout(config, shape, budget, use, memory, device, expert_concurrency, rows)
    padded = 1.0 if config.engine.attention == "flash_attention_2" else PADDING
    forward = rows * padded * shape.text_flops(use.total, use.total / 2) + rows * shape.vision_flops(use.image)
    # Backward is twice forward (once with frozen weights); checkpointing does forward once more.
    passes = (2 if config.lora.rank else 3) + (0 if device.is_cpu else 1)
    update = passes * forward / (gpus * device.tflops * 1e12 * device.update_mfu)
    # Each extra pass only reads: the actor's old log-probs, the reference policy's.
    extra = int(g.correction != "none") + int(g.kl > 0)
    log_probs = extra * forward / (gpus * device.tflops * 1e12 * device.prefill_mfu)
    width = 4 if device.is_cpu else 2
    sync = width * shape.parameters / (device.sync_gbs * 1e9)
    kept = 4 * (shape.parameters + 2 * trained(config, shape)) + width * shape.parameters
    checkpoint = kept / config.cluster.nodes / (device.disk_gbs * 1e9) / config.checkpoint.every
    rollout = prefill + decode + experts
    validation = 0.0
    if config.checkpoint.validate_every:
        share = validation_rows * g.validation_samples / rows
        validation = rollout * share / config.checkpoint.validate_every
    return StepTime(
        prefill, decode, experts, log_probs, update, sync, device.step_s, validation, checkpoint,
        (passes + extra) * forward / 1e12, rows * use.total, slots,
    )  # fmt: skip


def _rollout(
    config: TrainConfig,
    shape: Architecture,
    budget: Budget,
    use: Usage,
    memory: GpuMemory,
    device: Device,
    expert_concurrency: int,
    rows: int,
) -> tuple[float, float, float, int]:
    """Seconds of prefill, decode and experts; sequences of one engine at once."""
    e, g = config.engine, config.grpo
    engines = max(1, config.cluster.nodes * config.cluster.gpus_per_node // e.tensor_parallel)
    speed = device.tflops * 1e12 * e.tensor_parallel
    # Samples of one prompt share its cache within an engine, and are spread over all engines.
    prompts = g.prompts * min(g.samples, engines)
    read = prompts * (shape.text_flops(use.prompt, use.prompt / 2) + shape.vision_flops(use.image))
    seen = use.calls * use.observation
    read += rows * shape.text_flops(seen, use.prompt + use.response / 2)
    prefill = read / (engines * speed * device.prefill_mfu)

    sequences = rows / engines
    room = memory.kv_tokens / max(1.0, use.total)
    asked = rows if device.is_cpu else e.max_num_seqs
    slots = max(1, int(min(sequences, asked, room)))
    longest = min(use.tail * use.policy, float(budget.trajectory))
    tokens = sequences * use.policy
    iterations = max(tokens / slots, longest)
    width = 4 if device.is_cpu or e.dtype == "float32" else 2
    at_once = tokens / iterations
    kept = at_once * (use.prompt + use.response / 2) * shape.kv_per_token * width
    moved = (width * shape.text_parameters + kept) / e.tensor_parallel
    from_memory = moved / (device.bandwidth * 1e9 * device.bandwidth_share)
    arithmetic = shape.text_flops(at_once, use.prompt + use.response / 2) / (speed * device.prefill_mfu)
    decode = iterations * (max(from_memory, arithmetic) + device.iteration_s) + tokens * device.token_s

    chain = use.calls * use.latency * (1.0 if use.tail <= 1 else 2.0)  # the longest episode calls twice as often
    queue = rows * use.calls * use.latency / max(1, expert_concurrency)
    return prefill, decode, max(chain, queue), slots


def assumptions(config: TrainConfig, device: Device, use: Usage, expert_concurrency: int) -> list[str]:
    """What the estimate takes for granted, one sentence each."""
    return [
        f"{device.name}: {device.tflops:g} TFLOP/s and {device.bandwidth:g} GB/s at the most, of which the update "
        f"reaches {device.update_mfu:.0%}, reading {device.prefill_mfu:.0%}, decoding {device.bandwidth_share:.0%}",
        f"an episode: {use.prompt:.0f} prompt tokens ({use.image:.0f} of the picture), {use.policy:.0f} of the policy, "
        f"{use.calls:.2g} delegations with {use.observation:.0f} tokens each ({use.source})",
        f"the longest episode of a step has {use.tail:g} times the mean and ends the sampling for all",
        f"a delegation takes {use.latency:g} s; the experts take {expert_concurrency} at once",
        "samples of one prompt share its cache; sampling, delegations and update follow one another",
        f"the actor is sharded over {world(config)} GPUs"
        + ("" if device.is_cpu else " with gradient checkpointing (one more forward pass)")
        + ("" if config.engine.attention == "flash_attention_2" else f"; padding adds {PADDING - 1:.0%}"),
        f"{device.step_s:g} s a step for everything else, {device.sync_gbs:g} GB/s for new weights, "
        f"{device.disk_gbs:g} GB/s a node for checkpoints",
    ]
