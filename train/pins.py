"""The versions of verl and vLLM that the hooks of this folder were written for, and a refusal of any other."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from registry.errors import UserFault

PINS = {"verl": "0.9.1", "vllm": "0.24.0"}  # as in constraints/cpu.txt and constraints/gpu.txt


def installed(name: str) -> str | None:
    """The version of an installed distribution, None where there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_versions(found: Callable[[str], str | None] = installed) -> dict[str, str]:
    """The versions of verl and vLLM. Raises UserFault with both versions where one is missing or another."""
    versions = {name: found(name) for name in PINS}
    wrong = [
        f"{name} {versions[name] or 'is not installed'}, {pin} is needed"
        for name, pin in PINS.items()
        if (versions[name] or "").partition("+")[0] != pin  # +cpu and +cu names a build, not a version
    ]
    if wrong:
        raise UserFault(
            f"wrong versions: {'; '.join(wrong)}",
            where="this Python environment",
            fix="make install (CPU) or make install-gpu: the agent loop and the replay buffer reach into verl",
        )
    return {name: str(value) for name, value in versions.items()}
