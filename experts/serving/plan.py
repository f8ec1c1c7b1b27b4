"""`Plan`: everything that is settled before a server starts: placement, ports, command lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from experts.serving.gpus import Gpu
from experts.serving.launch import Launch, program, vllm_launch
from experts.serving.model import Elsewhere, ServedModel, served_models
from experts.serving.placement import Placement, budget_gib
from experts.serving.ports import free_port
from experts.serving.refusal import placed
from registry.registry import Registry


@dataclass(frozen=True)
class Plan:
    """What would be started, each launch with the port that it gets. notes: what is other than wanted."""

    placement: Placement
    launches: tuple[Launch, ...]
    elsewhere: tuple[Elsewhere, ...]
    notes: tuple[str, ...]

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """The distinct models."""
        return tuple(server.model for server in self.placement.servers if server.copy == 0)

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "gpus": [
                {
                    "gpu": gpu.label,
                    "total_gib": round(gpu.total_gib, 1),
                    "usable_gib": round(budget_gib(gpu, self.placement.utilization), 1),
                    "needed_gib": round(self.placement.needed_gib(gpu), 1),
                    "fraction": round(sum(server.fraction for server in self.placement.on(gpu)), 3),
                }
                for gpu in self.placement.gpus
            ],
            "servers": [
                {
                    "model": server.model.id,
                    "experts": list(server.model.experts),
                    "tools": list(server.model.tools),
                    "gpus": [gpu.label for gpu in server.gpus],
                    "weights_gib": round(server.memory.weights_gib, 1),
                    "cache_gib": round(server.memory.cache_gib, 1),
                    "rest_gib": round(server.memory.rest_gib, 1),
                    "size_from": server.memory.source,
                    "fraction": server.fraction,
                    "port": launch.wanted_port,
                    "command": list(launch.command(launch.wanted_port)),
                    "env": dict(launch.env),
                }
                for server, launch in zip(self.placement.servers, self.launches, strict=True)
            ],
            "elsewhere": [{"name": part.name, "urls": list(part.urls)} for part in self.elsewhere],
            "notes": list(self.notes),
        }


def make_plan(
    registry: Registry,
    gpus: Sequence[Gpu],
    *,
    only: Sequence[str] = (),
    utilization: float,
    vllm: str = "vllm",
    start: bool,
) -> Plan:
    """The plan for these GPUs. start: it is to be carried out, so the program must be there.
    Raises UserFault for whatever stands in the way."""
    models, elsewhere = served_models(registry, only)
    placement = placed(models, gpus, utilization)
    path = program(vllm, "install vLLM into this environment, or name its program with --vllm PATH", needed=start)
    wanted = [vllm_launch(server, path if start else vllm) for server in placement.servers]
    # Wishes first: a server without one must not take the port that another one is known by.
    wished = {launch.wanted_port for launch in wanted if launch.models[0].ports}
    launches: list[Launch] = []
    notes = []
    for launch in wanted:
        taken = {*(other.wanted_port for other in launches), *(wished - {launch.wanted_port})}
        port = free_port(launch.wanted_port, taken)
        if launch.models[0].ports and port != launch.wanted_port:
            notes.append(f"{launch.name}: port {launch.wanted_port} is in use, so it gets {port}")
        launches.append(replace(launch, wanted_port=port))
    return Plan(placement, tuple(launches), elsewhere, tuple(notes))
