"""`Device`: what one GPU (or this host's CPU) can hold and do, with the shares of it that training reaches.

One idea: peaks are the maker's figures, shares are assumptions that the command line can change, and both are printed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from registry.errors import UserFault


@dataclass(frozen=True)
class Device:
    """memory_gib: what the driver reports. tflops: dense peak in the training type (bfloat16; float32 on a CPU).
    bandwidth: bytes a second of its memory, in GB/s. Shares are of those peaks.

    update_mfu: forward and backward of the actor. prefill_mfu: reading prompts and observations, log-prob passes.
    bandwidth_share: of the memory's speed while decoding. token_s, iteration_s: seconds of host work for one sampled
    token and for one engine iteration. step_s: seconds a step beside everything else. sync_gbs: GB/s at which new
    weights reach the engine. disk_gbs: GB/s of checkpoints.
    """

    name: str
    memory_gib: float
    tflops: float
    bandwidth: float
    update_mfu: float = 0.30
    prefill_mfu: float = 0.40
    bandwidth_share: float = 0.65
    token_s: float = 40e-6
    iteration_s: float = 4e-3
    step_s: float = 20.0
    sync_gbs: float = 4.0
    disk_gbs: float = 1.0
    rest_gib: float = 2.5  # CUDA context, NCCL buffers, what vLLM keeps while it sleeps

    @property
    def is_cpu(self) -> bool:
        return self.name == "CPU"


# Makers' data sheets: SXM parts, dense figures without sparsity; memory as drivers report it.
DEVICES = {
    device.name: device
    for device in (
        Device("A100-40GB", 39.4, 312.0, 1555.0),
        Device("A100-80GB", 79.2, 312.0, 2039.0),
        Device("H100", 79.1, 989.0, 3350.0),
        Device("H200", 139.7, 989.0, 4800.0),
        Device("B200", 178.3, 2250.0, 8000.0),
        Device("L40S", 44.4, 362.0, 864.0),
    )
}
# float32 FLOP a second of one core: 2 fused units of 8 lanes at 2.45 GHz (AVX2).
CORE_GFLOPS = 78.0


def device_of(name: str, memory_gib: float | None = None) -> Device:
    """A device of the table, with another memory size where given. Raises UserFault for a name it lacks."""
    wanted = name.strip().lower()
    for key, device in DEVICES.items():
        if key.lower() == wanted:
            return device if memory_gib is None else replace(device, memory_gib=memory_gib)
    raise UserFault(
        f"no figures for a GPU {name!r}", where="--gpu", fix=f"use one of {', '.join(DEVICES)}, with --gpu-memory GB"
    )


def cpu_device(memory_gib: float, cores: int | None = None) -> Device:
    """This host's processor. Its shares and its host seconds were set by one measured run of the embedded tier
    (2 cores, docs/planning.md), where a pass is so small that everything but arithmetic rules."""
    cores = cores or os.cpu_count() or 1
    return Device(
        "CPU", memory_gib, CORE_GFLOPS * cores / 1000, 20.0,
        update_mfu=0.078, prefill_mfu=0.10, bandwidth_share=0.5,
        token_s=1.7e-3, iteration_s=15e-3, step_s=0.5, sync_gbs=0.05, disk_gbs=0.5, rest_gib=3.0,
    )  # fmt: skip
