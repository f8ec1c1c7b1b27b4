"""`ServerStatus`: how the servers of an endpoints file do, as a pool that has just started would find them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experts.clients.replicas import FAILURES_TO_OPEN, Replicas
from experts.endpoints import Endpoints
from experts.serving.model import ServedModel
from experts.serving.probe import Probe, ProbeFault, WrongModel
from registry.registry import Registry
from registry.schema import Expert, OpenAIBackend, Replica, Tool


@dataclass(frozen=True)
class ServerStatus:
    """One replica. running, waiting: requests as vLLM counts them, None where it does not say. latency_s: of one
    question with a picture. breaker: the pool's view after it (closed, open). version: of vLLM, None where it does not
    say. fault: what went wrong."""

    url: str
    model: str
    experts: tuple[str, ...]
    tools: tuple[str, ...]
    healthy: bool
    running: int | None
    waiting: int | None
    latency_s: float | None
    breaker: str
    version: str | None
    fault: str | None

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


async def statuses(endpoints: Endpoints, registry: Registry, timeout_s: float = 30.0) -> list[ServerStatus]:
    """Ask every server of the file, all at once; each within about three times `timeout_s`. The registry says which
    key a server wants and whether it takes pictures."""
    models = _models(endpoints, registry)
    probe = Probe()
    try:
        return await asyncio.gather(
            *(_status(probe, replica, model, timeout_s) for model, replicas in models for replica in replicas)
        )
    finally:
        await probe.aclose()


async def _status(probe: Probe, replica: Replica, model: ServedModel, timeout_s: float) -> ServerStatus:
    base = replica.url.removesuffix("/v1")
    replicas = Replicas([replica])
    latency, fault = None, None
    for _ in range(FAILURES_TO_OPEN):
        with replicas.lease() as lease:
            if lease is None:
                break
            try:
                await probe.check_name(base, model)
                latency, fault = await probe.ask(base, model, timeout_s), None
            except ProbeFault as found:
                fault = str(found)
                # As the pool judges: a wrong name or a refused request says nothing about the server's life.
                lease.alive = None if found.final or isinstance(found, WrongModel) else False
            else:
                lease.alive = True
        if latency is not None or lease.alive is None:
            break
    queue, version = await asyncio.gather(probe.queue(base), probe.version(base))
    return ServerStatus(
        url=replica.url,
        model=model.id,
        experts=model.experts,
        tools=model.tools,
        healthy=latency is not None,
        running=queue[0] if queue else None,
        waiting=queue[1] if queue else None,
        latency_s=latency,
        breaker=replicas.status()[0]["state"],
        version=version,
        fault=fault,
    )


def _models(endpoints: Endpoints, registry: Registry) -> list[tuple[ServedModel, tuple[Replica, ...]]]:
    """The distinct models of the file, with who uses them."""
    served = {(entry.model, entry.replicas) for entry in (*endpoints.experts.values(), *endpoints.tools.values())}
    found = []
    for model, replicas in sorted(served, key=lambda one: one[1][0].url):
        experts, tools = (
            [name for name, entry in entries.items() if (entry.model, entry.replicas) == (model, replicas)]
            for entries in (endpoints.experts, endpoints.tools)
        )
        parts = [
            *(part for part in registry.experts if part.name in experts),
            *(part for part in registry.tools if part.name in tools),
        ]
        found.append((_model(model, parts, experts, tools), replicas))
    return found


def _model(model: str, parts: Sequence[Expert | Tool], experts: Sequence[str], tools: Sequence[str]) -> ServedModel:
    keys = [part.backend.api_key_env for part in parts if isinstance(part.backend, OpenAIBackend)]
    return ServedModel(
        id=model,
        experts=tuple(experts),
        tools=tuple(tools),
        context_tokens=max((part.limits.context_tokens for part in parts), default=1),
        max_images=max((part.limits.max_images for part in parts), default=1),
        api_key_env=next((key for key in keys if key), None),
    )
