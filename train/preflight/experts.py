"""Whether every served expert and tool answers a question with a picture."""

from __future__ import annotations

import asyncio

from experts.endpoints import Endpoint, Endpoints, with_endpoints
from experts.serving.status import statuses
from registry.errors import UserFault
from registry.registry import Registry
from registry.schema import OpenAIBackend
from train.preflight.site import Site

_SHOWN = 8


def check(site: Site) -> str:
    """Raises UserFault naming every server that does not answer, or none where some expert has no server."""
    registry, file = site.registry, site.config.endpoints
    if file is not None:
        registry = with_endpoints(registry, file)
    places = served(registry)
    programs = len(registry.experts) + len(registry.tools) - len(places.experts) - len(places.tools)
    here = f"{programs} are programs in this process"
    if not places.experts and not places.tools:
        return here
    found = asyncio.run(statuses(places, registry, site.timeout_s))
    ill = [server for server in found if not server.healthy]
    if ill:
        listing = "; ".join(f"{', '.join((*s.experts, *s.tools))} at {s.url}: {s.fault}" for s in ill[:_SHOWN])
        more = f"; and {len(ill) - _SHOWN} more" if len(ill) > _SHOWN else ""
        raise UserFault(
            f"{len(ill)} of {len(found)} servers do not answer a question with a picture: {listing}{more}",
            where=str(file or "the registry's replicas"),
            fix="start them (`maestro experts serve`), see `maestro experts status`, or correct `endpoints`",
        )
    slowest = max(server.latency_s or 0.0 for server in found)
    local = sum("//127." in server.url or "//localhost" in server.url for server in found)
    note = f"; {local} are on this node's loopback: every other node needs its own there" if local else ""
    note = note if site.config.cluster.nodes > 1 else ""
    return f"{len(found)} servers answer a question with a picture, in {slowest:.1f} s at most; {here}{note}"


def served(registry: Registry) -> Endpoints:
    """Where the registry's served experts and tools are."""
    experts, tools = (
        {
            part.name: Endpoint(model=part.backend.model, replicas=part.backend.replicas)
            for part in parts
            if isinstance(part.backend, OpenAIBackend)
        }
        for parts in (registry.experts, registry.tools)
    )
    return Endpoints(version=1, written=0, experts=experts, tools=tools)
