"""A CPU platform for verl, through verl's own plug-in point.

One idea: verl counts only accelerators, so Ray's *logical* GPU slots stand for CPU workers; everything that would ask
a device answers from the host. Selected by `VERL_PLATFORM=cpu` alone: on a GPU node loading this module does nothing.
"""

from __future__ import annotations

import os
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psutil
import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry


class _Event:
    """An event that has always happened: CPU work is done when the call returns."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def record(self, *args: Any, **kwargs: Any) -> None: ...

    def wait(self, *args: Any, **kwargs: Any) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Stands for device calls that have no meaning on a host."""


def _resident_bytes(*args: Any, **kwargs: Any) -> int:
    return psutil.Process().memory_info().rss


def _host_memory(*args: Any, **kwargs: Any) -> tuple[int, int]:
    memory = psutil.virtual_memory()
    return memory.available, memory.total


@cache
def _device_module() -> types.ModuleType:
    """`torch.cpu` with the names of `torch.cuda` that verl calls."""
    module = types.ModuleType("maestro_torch_cpu")
    for name in dir(torch.cpu):
        if not name.startswith("__"):
            setattr(module, name, getattr(torch.cpu, name))
    overrides: dict[str, Any] = {
        "is_available": lambda: False,  # memory helpers and device RNG state are skipped
        "current_device": lambda: torch.device("cpu"),
        "device_count": lambda: 1,
        "mem_get_info": _host_memory,
        "get_rng_state": lambda *a, **k: torch.get_rng_state(),
        "set_rng_state": lambda state, *a, **k: torch.set_rng_state(state),
        "manual_seed": torch.manual_seed,
        "manual_seed_all": torch.manual_seed,
        "get_device_name": lambda *a, **k: "cpu",
        "get_device_capability": lambda *a, **k: (None, None),
        "Event": _Event,
    }
    for name in ("set_device", "synchronize", "empty_cache", "ipc_collect", "reset_peak_memory_stats",
                 "set_per_process_memory_fraction"):  # fmt: skip
        overrides[name] = _nothing
    for name in ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"):
        overrides[name] = _resident_bytes
    for name, value in overrides.items():
        setattr(module, name, value)
    return module


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):
    """verl's view of a host without accelerators (methods as in verl's PlatformBase)."""

    @property
    def device_name(self) -> str:
        return "cpu"

    @property
    def vendor_name(self) -> str:
        return "cpu"

    @property
    def device_module(self) -> Any:
        return _device_module()

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return False  # never detected, only chosen by name

    def current_device(self) -> Any:
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None: ...

    def synchronize(self, device_index: int | None = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...

    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return (None, None)

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None: ...

    def profiler_stop(self) -> None: ...

    def ray_resource_name(self) -> str:
        return "GPU"  # Ray's logical slots

    def ray_resource_options(self, num_gpus: float) -> dict[str, Any]:
        return {"num_gpus": num_gpus}

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False  # selects verl's shared-memory weight transfer

    def rollout_env_vars(self) -> dict[str, str]:
        return {}

    def cudart(self) -> Any:
        return None


def _use_gloo_only() -> None:
    """verl builds the backend string "cpu:gloo,<device>:<backend>", which torch refuses where <device> is cpu.

    The function has a `backend` argument; it gets a default.
    """
    import verl.utils.distributed as distributed

    original = distributed.initialize_global_process_group_ray

    def initialize(timeout_second: int | None = None, backend: str | None = None) -> Any:
        return original(timeout_second=timeout_second, backend=backend or "cpu:gloo")

    distributed.initialize_global_process_group_ray = initialize


def _never_pin_memory() -> None:
    """verl keeps a reference policy in pinned host memory, which only a CUDA driver can give. Must run before verl's
    engines are imported, which take the class from torch by name.
    """
    import torch.distributed.fsdp as fsdp

    class HostPolicy(fsdp.CPUOffloadPolicy):
        def __init__(self, pin_memory: bool = False) -> None:
            super().__init__(pin_memory=False)

    fsdp.CPUOffloadPolicy = HostPolicy  # type: ignore[misc]


if os.environ.get("VERL_PLATFORM") == "cpu":
    _use_gloo_only()
    _never_pin_memory()
