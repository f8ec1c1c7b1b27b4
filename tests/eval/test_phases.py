"""Seconds of an evaluation's phases are a convenience: a damaged file of them stops nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval.phases import Clock


@pytest.mark.parametrize(
    ("content", "known"),
    [(b"[1]", {}), (b"null", {}), (b'{"rows": ', {}), (b"\xff", {}), (b'{"rows": 2.5, "arm": "x"}', {"rows": 2.5})],
)
def test_a_damaged_file_of_seconds_is_begun_anew(content: bytes, known: dict[str, float], tmp_path: Path) -> None:
    (tmp_path / "seconds.json").write_bytes(content)
    clock = Clock(tmp_path)
    assert clock.seconds == known
    with clock.phase("arm"):
        pass
    assert set(json.loads((tmp_path / "seconds.json").read_text())) == {*known, "arm"}
