"""`ExpertsNeed`: where the registry's served models could run beside the training.

One idea: the launcher's own estimate and placement (`maestro experts serve`), asked two questions: how many GPUs of
their own the experts need, and whether they fit into what the training leaves free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experts.serving.gpus import Gpu, planned_gpus
from experts.serving.memory import UnknownSize, memory_of
from experts.serving.model import ServedModel, served_models
from experts.serving.placement import UTILIZATION, place
from registry.errors import UserFault
from registry.registry import Registry
from registry.schema import OpenAIBackend
from train.plan.device import Device

_MOST_GPUS = 16


@dataclass(frozen=True)
class ExpertsNeed:
    """models: (id, GiB on each of its GPUs). own_gpus: fewest GPUs of the planned kind that hold all of them, None
    where even 16 do not. beside: they fit into the training GPUs' room. concurrency: delegations at once."""

    models: tuple[tuple[str, float], ...]
    elsewhere: tuple[str, ...]
    own_gpus: int | None
    beside: bool
    concurrency: int
    note: str = ""

    @property
    def total_gib(self) -> float:
        return sum(gib for _, gib in self.models)

    def record(self) -> dict[str, Any]:
        """As plain data, GiB."""
        return {
            "models": [{"model": name, "gib": round(gib, 1)} for name, gib in self.models],
            "elsewhere": list(self.elsewhere),
            "total_gib": round(self.total_gib, 1),
            "own_gpus": self.own_gpus,
            "fit_beside_training": self.beside,
            "concurrency": self.concurrency,
            "note": self.note,
        }


def experts_need(registry: Registry, device: Device, gpus: int, room_gib: float) -> ExpertsNeed:
    """The need of `registry`'s served models. gpus, room_gib: a node's training GPUs and what each has left."""
    concurrency = 0
    for expert in registry.experts:
        backend = expert.backend
        copies = len(backend.replicas) if isinstance(backend, OpenAIBackend) else 1
        concurrency += expert.limits.max_concurrency * copies
    if not any(isinstance(part.backend, OpenAIBackend) for part in (*registry.experts, *registry.tools)):
        return ExpertsNeed((), (), 0, True, concurrency, "all experts are programs of this process")
    try:
        models, others = served_models(registry)
    except UserFault as error:
        return ExpertsNeed((), (), 0, True, concurrency, error.what)
    elsewhere = tuple(part.name for part in others)
    try:
        needs = tuple((model.id, memory_of(model).total_gib) for model in models for _ in range(model.serving.replicas))
    except UnknownSize as error:
        return ExpertsNeed((), elsewhere, None, False, concurrency, str(error))
    room = [Gpu(index, device.memory_gib, room_gib, "planned") for index in range(gpus)]
    beside = not device.is_cpu and place(models, room, 1.0) is not None
    return ExpertsNeed(needs, elsewhere, _fewest(models, device), beside, concurrency)


def _fewest(models: tuple[ServedModel, ...], device: Device) -> int | None:
    for count in range(1, _MOST_GPUS + 1):
        if place(models, planned_gpus(range(count), device.memory_gib), UTILIZATION) is not None:
            return count
    return None
