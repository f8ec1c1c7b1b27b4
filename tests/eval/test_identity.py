"""A run folder belongs to one setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.identity import folder_digest, hold
from registry.errors import UserFault


def test_the_same_settings_go_on(tmp_path: Path) -> None:
    hold(tmp_path, {"seed": 1, "arms": {"after": {"temperatures": (1.0, 0.0)}}})
    hold(tmp_path, {"seed": 1, "arms": {"after": {"temperatures": [1.0, 0.0]}}})


def test_changed_settings_are_refused_with_each_difference(tmp_path: Path) -> None:
    hold(tmp_path, {"seed": 1, "samples": 4, "budget": {"horizon": 4}})
    with pytest.raises(UserFault) as caught:
        hold(tmp_path, {"seed": 2, "budget": {"horizon": 3}, "extra": True})
    text = str(caught.value)
    assert "seed: 1 -> 2" in text
    assert "budget.horizon: 4 -> 3" in text
    assert "samples: 4 -> (absent)" in text
    assert "extra: (absent) -> true" in text
    assert "--run" in text


def test_a_checkpoint_of_other_weights_has_another_digest(tmp_path: Path) -> None:
    for name, weights in (("a", b"1234"), ("b", b"1235"), ("c", b"1234")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(weights)
    first, second, third = (folder_digest(tmp_path / name) for name in "abc")
    assert first == third != second
