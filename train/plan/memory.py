"""`GpuMemory`: what one training GPU must hold, in each of a step's three phases.

One idea: verl's colocated step is sampling, then the update (vLLM asleep), then the weight sync, and a GPU must hold
each of them; every part is a line with its formula in words. Estimates lean to the high side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from train.config import TrainConfig
from train.plan.architecture import Architecture
from train.plan.device import Device
from train.plan.tokens import Budget

GIB = 2**30
# Copies of the logits alive at the peak of the backward pass, in the compute type: logits, softmax and product of the
# entropy, log-softmax, gradient; rows that are not packed are copied once more (verl's FSDP engine).
LOGIT_COPIES, LOGIT_COPIES_PADDED = 5, 6
SPARE = 0.04  # share of a GPU that fragmentation takes
VLLM_REST_GIB = 3.0  # vLLM's own activations, picture encoder's peak and CUDA graphs
CHUNKED = "actor_rollout_ref.actor.entropy_from_logits_with_chunking"  # verl heeds it for packed rows only
_FSDP = "actor_rollout_ref.actor.fsdp_config."


@dataclass(frozen=True)
class Part:
    """GiB on one GPU, and why."""

    name: str
    gib: float
    why: str


@dataclass(frozen=True)
class Phase:
    """All that is on a GPU at one time."""

    name: str
    parts: tuple[Part, ...]

    @property
    def total(self) -> float:
        return sum(part.gib for part in self.parts)


@dataclass(frozen=True)
class GpuMemory:
    """phases: sampling, update, sync. kv_*: the rollout engine's cache. host_gib: the node's memory for what waits
    there. limit: what of a GPU may be planned with. faults: one sentence for each thing that does not fit."""

    phases: tuple[Phase, ...]
    limit: float
    kv_gib: float
    kv_tokens: int
    kv_rows: float
    host_gib: float
    faults: tuple[str, ...]

    @property
    def peak(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.total)

    @property
    def fits(self) -> bool:
        return not self.faults

    @property
    def room(self) -> float:
        """GiB that no phase uses: what experts on the same GPUs could have."""
        return max(0.0, self.limit - self.peak.total)


def memory_of_gpu(config: TrainConfig, shape: Architecture, budget: Budget, device: Device) -> GpuMemory:
    """Memory of one of the training GPUs (or of the host, on a CPU)."""
    resident, host = _resident(config, shape)
    rollout, kv_gib = _rollout(config, shape, device)
    rest = Part("rest", device.rest_gib, "CUDA context, NCCL, the engine asleep" if not device.is_cpu else "processes")
    waits = config.engine.offload and not device.is_cpu
    awake = (rollout,) if device.is_cpu else ()  # on a CPU the engine never sleeps
    phases = (
        Phase("sampling", (*(() if waits else resident[:2]), rollout, rest)),
        Phase("update", (*resident, *_update(config, shape, budget), *awake, rest)),
        Phase("sync", (*resident[: 1 if waits else 2], *_sync(config, shape), *awake, rest)),
    )
    limit = device.memory_gib * (1 - SPARE)
    kv_bytes = shape.kv_per_token * _width(config)
    kv_tokens = int(max(0.0, kv_gib) * GIB * config.engine.tensor_parallel / kv_bytes)
    rows = kv_tokens / budget.longest_row
    faults = [
        f"{phase.name} needs {phase.total:.1f} GiB of a GPU's {limit:.1f} "
        f"(largest: {', '.join(f'{part.name} {part.gib:.1f}' for part in _largest(phase))})"
        for phase in phases
        if phase.total > limit
    ]
    if rows < 1:
        faults.append(
            f"engine.memory={config.engine.memory:g} leaves the rollout a cache of {kv_tokens} tokens, and one row "
            f"may have {budget.longest_row}"
        )
    return GpuMemory(phases, limit, max(0.0, kv_gib), kv_tokens, rows, host, tuple(faults))


def micro_tokens(config: TrainConfig, budget: Budget) -> int:
    """The most tokens of one forward pass of the actor."""
    if config.grpo.dynamic_batch:
        return max(config.grpo.micro_tokens, budget.longest_row)
    return (config.grpo.micro_rollouts or 1) * budget.longest_row


def world(config: TrainConfig) -> int:
    """GPUs that the actor is sharded over."""
    size = config.verl.get(_FSDP + "fsdp_size", -1)
    whole = config.cluster.nodes * config.cluster.gpus_per_node
    return size if isinstance(size, int) and 0 < size <= whole else whole


def trained(config: TrainConfig, shape: Architecture) -> int:
    """Weights that get gradients."""
    if config.lora.rank:
        return shape.lora_parameters(config.lora.rank, config.lora.vision)
    return shape.parameters


def _resident(config: TrainConfig, shape: Architecture) -> tuple[tuple[Part, ...], float]:
    """(weights, optimiser, gradients: between phases only the first two stay), and GiB of the node's memory."""
    shards, count = world(config), trained(config, shape)
    width = 2 if str(config.verl.get(_FSDP + "model_dtype", "fp32")) in ("bf16", "bfloat16", "fp16") else 4
    frozen = shape.parameters + (count if config.lora.rank else 0)
    weights = width * frozen / shards / GIB
    why = f"{_count(frozen)} weights x {width} bytes over {shards} GPUs"
    if config.grpo.kl > 0 and not config.lora.rank:
        weights += 2 * shape.parameters / shards / GIB
        why += ", and the reference policy in 2"
    optimiser = 2 * width * count / shards / GIB
    gradients = width * count / shards / GIB
    host = (weights + optimiser) * config.cluster.gpus_per_node if config.engine.offload else 0.0
    return (
        Part("weights", weights, why),
        Part("optimiser", optimiser, f"AdamW: 2 x {width} bytes of {_count(count)} trained weights"),
        Part("gradients", gradients, f"{width} bytes of each trained weight"),
    ), host


def _update(config: TrainConfig, shape: Architecture, budget: Budget) -> tuple[Part, ...]:
    width, tokens = _actor_width(config), micro_tokens(config, budget)
    whole = config.platform == "cpu"
    gathered = 0.0 if world(config) == 1 and whole else width * (2 * shape.root_parameters + 3 * shape.per_layer) / GIB
    vision = shape.vision
    # One layer's live tensors: norms and residuals, queries, keys and values, gate, up and their product.
    live = 6 * shape.hidden + 2 * (shape.heads + shape.kv_heads) * shape.head_dim + 4 * shape.intermediate
    checkpointed = not whole
    per_token = shape.layers * shape.hidden + 2 * live if checkpointed else shape.layers * live
    pictures = 0.0
    if vision is not None:
        share = min(budget.image_limit or 0, budget.prompt) / budget.longest_row
        patches = tokens * share * vision.merge**2
        block = 8 * vision.hidden + 2 * vision.intermediate
        pictures = width * patches * (
            vision.depth * vision.hidden + 2 * block if checkpointed else vision.depth * block
        )  # fmt: skip
    packed = config.engine.attention == "flash_attention_2"
    copies = LOGIT_COPIES if packed else LOGIT_COPIES_PADDED
    if packed and config.verl.get(CHUNKED):
        copies -= 2
    logits = copies * width * tokens * shape.vocabulary / GIB
    if config.verl.get("actor_rollout_ref.model.use_fused_kernels"):
        logits, copies = 0.1 * logits / copies, 0
    kept = "each layer's input and one layer's inside (checkpointing)" if checkpointed else "every layer's inside"
    return (
        Part("gathered", gathered, "embeddings and their gradients, three layers at a time"),
        Part("activations", (width * tokens * per_token + pictures) / GIB, f"{tokens} tokens, {kept}"),
        Part("logits", logits, f"{tokens} tokens x {shape.vocabulary} words x {width} bytes x {copies} copies"),
    )


def _rollout(config: TrainConfig, shape: Architecture, device: Device) -> tuple[Part, float]:
    weights = shape.parameters * _width(config) / config.engine.tensor_parallel / GIB
    if device.is_cpu:
        return Part("rollout", weights + 1.0, "the engine's weights and 1 GiB of cache"), 1.0
    share = device.memory_gib * config.engine.memory
    cache = share - weights - VLLM_REST_GIB
    why = (
        f"engine.memory={config.engine.memory:g}: weights {weights:.1f}, own needs {VLLM_REST_GIB:g}, cache {cache:.1f}"
    )
    return Part("rollout", share, why), cache


def _sync(config: TrainConfig, shape: Architecture) -> tuple[Part, ...]:
    weights = shape.parameters * _width(config) / config.engine.tensor_parallel / GIB
    bucket = config.engine.sync_mb / 1024 if config.platform == "cuda" else 16 / 1024
    largest = shape.embedding * 4 / GIB
    return (
        Part("rollout weights", weights, "the engine's copy is back, its cache is not"),
        Part("buffers", 2 * bucket + largest, "two buckets and the vocabulary matrix gathered"),
    )


def _width(config: TrainConfig) -> int:
    """Bytes of one weight in the rollout engine."""
    return 4 if config.platform == "cpu" or config.engine.dtype == "float32" else 2


def _actor_width(config: TrainConfig) -> int:
    """Bytes in which the actor computes."""
    return 4 if config.platform == "cpu" else 2


def _count(weights: int) -> str:
    return f"{weights / 1e9:.2f}B" if weights >= 1e8 else f"{weights / 1e6:.2f}M"


def _largest(phase: Phase) -> list[Part]:
    return sorted(phase.parts, key=lambda part: -part.gib)[:3]


def record(memory: GpuMemory) -> dict[str, Any]:
    """As plain data, GiB."""
    return {
        "limit_gib": round(memory.limit, 2),
        "peak": memory.peak.name,
        "peak_gib": round(memory.peak.total, 2),
        "room_gib": round(memory.room, 2),
        "kv_cache_gib": round(memory.kv_gib, 2),
        "kv_cache_tokens": memory.kv_tokens,
        "kv_cache_longest_rows": round(memory.kv_rows, 1),
        "node_memory_for_offload_gib": round(memory.host_gib, 1),
        "phases": {
            phase.name: {
                "total_gib": round(phase.total, 2),
                "parts": [{"name": p.name, "gib": round(p.gib, 2), "why": p.why} for p in phase.parts],
            }
            for phase in memory.phases
        },
    }
