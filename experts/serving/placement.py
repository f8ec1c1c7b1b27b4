"""`Placement`: which model runs on which GPU, and which share of its memory it may take.

The one idea: the largest model first, on the GPU with the most room, so that load spreads; where that leads
into a corner, a bounded search looks for any way. What is left of a GPU is shared out as more cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from experts.serving.gpus import Gpu
from experts.serving.memory import Memory, memory_of
from experts.serving.model import ServedModel

UTILIZATION = 0.9
_MOST_STEPS = 20_000


@dataclass(frozen=True)
class Placed:
    """One server: a model (its `copy`-th, from 0) on its GPUs; `fraction` is each GPU's share for it."""

    model: ServedModel
    copy: int
    gpus: tuple[Gpu, ...]
    memory: Memory
    fraction: float


@dataclass(frozen=True)
class Placement:
    """All servers in the order in which they start, and the GPUs that were there to choose from."""

    servers: tuple[Placed, ...]
    gpus: tuple[Gpu, ...]
    utilization: float

    def on(self, gpu: Gpu) -> tuple[Placed, ...]:
        """The servers on one GPU."""
        return tuple(server for server in self.servers if gpu in server.gpus)

    def needed_gib(self, gpu: Gpu) -> float:
        """The sum of what its servers need at least."""
        return sum(server.memory.total_gib for server in self.on(gpu))


@dataclass(frozen=True)
class _Item:
    model: ServedModel
    copy: int
    memory: Memory
    width: int


def budget_gib(gpu: Gpu, utilization: float) -> float:
    """What may be used of a GPU: its share, and no more than what others have left free."""
    return min(gpu.total_gib * utilization, gpu.free_gib)


def place(
    models: Iterable[ServedModel],
    gpus: Sequence[Gpu],
    utilization: float = UTILIZATION,
    need: Callable[[ServedModel], Memory] = memory_of,
) -> Placement | None:
    """A placement of every copy of every model, or None when there is none. The same input gives the same
    placement. Raises UserFault when a model's size is not known."""
    items = [
        _Item(model, copy, need(model), model.serving.tensor_parallel)
        for model in models
        for copy in range(model.serving.replicas)
    ]
    items.sort(key=lambda item: (-item.width, -item.memory.total_gib))
    room = [budget_gib(gpu, utilization) for gpu in gpus]
    chosen = _spread(items, list(room)) or _search(items, list(room), [_MOST_STEPS])
    if chosen is None:
        return None
    load = [0.0] * len(gpus)
    for item, places in zip(items, chosen, strict=True):
        for place_ in places:
            load[place_] += item.memory.total_gib
    servers = []
    for item, places in zip(items, chosen, strict=True):
        share = min(item.memory.total_gib * room[p] / load[p] / gpus[p].total_gib for p in places)
        # Rounded down: shares of one GPU must never add up to more than all of it.
        fraction = math.floor(share * 1000 + 1e-6) / 1000
        servers.append(Placed(item.model, item.copy, tuple(gpus[p] for p in places), item.memory, fraction))
    return Placement(tuple(servers), tuple(gpus), utilization)


def _spread(items: Sequence[_Item], room: list[float]) -> list[tuple[int, ...]] | None:
    chosen = []
    for item in items:
        emptiest = sorted(range(len(room)), key=lambda p: (-room[p], p))[: item.width]
        if len(emptiest) < item.width or room[emptiest[-1]] < item.memory.total_gib:
            return None
        for place_ in emptiest:
            room[place_] -= item.memory.total_gib
        chosen.append(tuple(sorted(emptiest)))
    return chosen


def _search(items: Sequence[_Item], room: list[float], steps: list[int]) -> list[tuple[int, ...]] | None:
    """Tightest first, by backtracking; `steps` holds how many tries are left."""
    if not items:
        return []
    item, size = items[0], items[0].memory.total_gib
    able = sorted((p for p in range(len(room)) if room[p] >= size), key=lambda p: (room[p], p))
    tried: set[tuple[float, ...]] = set()
    for places in combinations(able, item.width):
        steps[0] -= 1
        if steps[0] < 0:
            return None
        alike = tuple(sorted(round(room[p], 6) for p in places))
        if alike in tried:  # GPUs with equal room are interchangeable
            continue
        tried.add(alike)
        for p in places:
            room[p] -= size
        rest = _search(items[1:], room, steps)
        if rest is not None:
            return [tuple(sorted(places)), *rest]
        for p in places:
            room[p] += size
    return None
