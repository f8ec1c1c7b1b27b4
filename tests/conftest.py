"""Shared fixtures: the folder of real benchmark rows, where it exists."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder beside the checkout with real benchmark rows; tests that need it skip where it is absent."""
    for base in Path(__file__).resolve().parents:
        folder = base.parent / "shared"
        if (folder / "data" / "benchmarks").is_dir():
            return folder
    pytest.skip("no folder ../shared/data/benchmarks beside the checkout")
