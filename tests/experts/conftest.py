"""Fixtures of this folder; the folder itself is importable, for the doubles that its tests share."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from expert_doubles import PROGRAMS
from sandbox_doubles import ABSENT
from serving_doubles import Bench

from experts.sandbox.isolation import NAMES
from experts.serving.process import clear_leftovers
from registry.registry import Registry


@pytest.fixture
def programs(tmp_path: Path, monkeypatch) -> str:
    """Name of a fresh module with the programs above."""
    name = f"programs_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PROGRAMS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@pytest.fixture(params=NAMES)
def held_isolation(request: pytest.FixtureRequest) -> str:
    """Each isolation that holds here."""
    if request.param in ABSENT:
        pytest.skip(f"no {request.param} here: {ABSENT[request.param]}")
    return request.param


@pytest.fixture
def isolation(held_isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The same; afterwards no scratch folder is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield held_isolation
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Registry]:
    """Loads a registry from its text."""

    def _load(text: str) -> Registry:
        path = tmp_path / "registry.yaml"
        path.write_text(text)
        return Registry.load(path)

    return _load


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes a bench of stand-ins for vLLM in the test's folder; afterwards none of them runs."""
    yield lambda **options: Bench(tmp_path, **options)
    clear_leftovers(str(tmp_path / "endpoints.json"))
