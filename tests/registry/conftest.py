"""Small registry files, written by the tests themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from registry.errors import RegistryFault
from registry.registry import Registry

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes text (or bytes) to a file in the test's folder and returns its path."""

    def _write(content: str | bytes, name: str = "registry.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else dedent(content).encode())
        return path

    return _write


@pytest.fixture
def faults_of(tmp_path: Path) -> Callable[..., list[str]]:
    """The faults of loading some paths, each as text with the folder cut off."""

    def _faults(*paths: Path) -> list[str]:
        with pytest.raises(RegistryFault) as caught:
            Registry.load(*paths)
        return [str(fault).replace(f"{tmp_path}/", "") for fault in caught.value.faults]

    return _faults
