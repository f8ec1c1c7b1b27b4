"""Fixtures of this folder; the folder itself is importable, for the doubles that its tests share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from expert_doubles import PROGRAMS


@pytest.fixture
def programs(tmp_path: Path, monkeypatch) -> str:
    """Name of a fresh module with the programs above."""
    name = f"programs_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PROGRAMS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name
