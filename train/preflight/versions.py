"""Whether verl and vLLM are those that our hooks were written for, and built for what the config trains on."""

from __future__ import annotations

from collections.abc import Callable

from registry.errors import UserFault
from train.pins import check_versions, installed
from train.preflight.site import Site


def check(site: Site, found: Callable[[str], str | None] = installed) -> str:
    """Raises UserFault for other versions, and for builds without CUDA where the config asks for it."""
    versions = check_versions(found)
    built = [f"{name} {version}" for name in ("vllm", "torch") if (version := found(name) or "").endswith("+cpu")]
    if site.config.platform == "cuda" and built:
        raise UserFault(
            f"built for CPUs: {', '.join(built)}", where="this Python environment", fix="make install-gpu on this node"
        )
    return ", ".join(f"{name} {version}" for name, version in versions.items())
