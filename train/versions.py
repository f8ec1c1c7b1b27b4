"""Versions of what a training result depends on."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

_NAMES = ("maestro-orchestrator", "torch", "transformers", "verl", "ray", "vllm", "numpy", "rapidocr")


def versions() -> dict[str, str]:
    """Package to version, of those that are installed."""
    found = {}
    for name in _NAMES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
