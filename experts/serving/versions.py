"""Which versions the servers of a registry run: the same settings can give other answers under another one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from experts.endpoints import with_endpoints
from experts.serving.probe import Probe
from registry.errors import UserFault
from registry.registry import Registry
from registry.schema import OpenAIBackend

ASKED_S = 3.0
_AT_ONCE = 16


async def server_versions(
    registry: Registry,
    endpoints: Path | None = None,
    others: Mapping[str, str] | None = None,
    timeout_s: float = ASKED_S,
) -> dict[str, str]:
    """`{"expert NAME": "vllm 0.24.0", "tool NAME": ...}` for those whose servers say it, and the same for `others`
    (name to base URL). Replicas of several versions give `vllm A | vllm B`. Who does not answer within `timeout_s`
    seconds is left out; raises nothing for servers or file."""
    try:
        registry = registry if endpoints is None else with_endpoints(registry, endpoints)
    except UserFault:  # the pool's to tell
        return {}
    parts = [*(("expert", part) for part in registry.experts), *(("tool", part) for part in registry.tools)]
    bases = {
        f"{kind} {part.name}": [_base(replica.url) for replica in part.backend.replicas]
        for kind, part in parts
        if isinstance(part.backend, OpenAIBackend)
    }
    bases |= {name: [_base(url)] for name, url in (others or {}).items()}
    if not bases:
        return {}
    probe, places = Probe(), asyncio.Semaphore(_AT_ONCE)

    async def ask(base: str) -> tuple[str, str | None]:
        async with places:
            return base, await probe.version(base, timeout_s)

    try:
        said = dict(await asyncio.gather(*map(ask, sorted({base for some in bases.values() for base in some}))))
    finally:
        await probe.aclose()
    found = {name: sorted({f"vllm {said[base]}" for base in some if said[base]}) for name, some in bases.items()}
    return {name: " | ".join(versions) for name, versions in found.items() if versions}


def _base(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")
