"""Where step records are logged to, and what happens when that is not there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from registry.errors import UserFault
from train.config import TrainConfig
from train.paths import RunPaths
from train.trackers import Trackers, check_wandb, flat_numbers


class Kept:
    def __init__(self, fault: Exception | None = None) -> None:
        self.records: list[dict[str, Any]] = []
        self.fault = fault

    def write(self, record: dict[str, Any]) -> None:
        if self.fault is not None:
            raise self.fault
        self.records.append(record)

    def close(self) -> None:
        self.records.append({"closed": True})


def test_a_tracker_that_fails_is_told_once_and_the_others_go_on() -> None:
    told: list[str] = []
    good, bad = Kept(), Kept(OSError("no route"))
    trackers = Trackers([bad, good], told.append)
    trackers.write({"step": 1})
    trackers.write({"step": 2})
    trackers.close()
    assert good.records == [{"step": 1}, {"step": 2}, {"closed": True}]
    assert told == ["Kept: no longer logged to: OSError: no route"]


def test_numbers_are_flat_and_text_truth_and_gaps_are_no_numbers() -> None:
    record = {"step": 3, "reward": 0.5, "kl": None, "ok": True, "name": "x", "pairs": {"A@@S": 2, "deep": {"b": 1}}}
    assert dict(flat_numbers(record)) == {"reward": 0.5, "pairs/A@@S": 2, "pairs/deep/b": 1}


def test_wandb_is_off_unless_it_is_asked_for() -> None:
    assert TrainConfig().watch.wandb is False


def test_wandb_without_its_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UserFault, match="the package wandb is not installed"):
        check_wandb()


def test_wandb_without_a_key_is_refused_and_offline_needs_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    with pytest.raises(UserFault, match="there is no key"):
        check_wandb()
    monkeypatch.setenv("WANDB_MODE", "offline")
    check_wandb()


def test_the_page_and_the_pauses_lie_in_the_run(tmp_path: Path) -> None:
    paths = RunPaths.at(tmp_path)
    assert (paths.page, paths.pauses) == (tmp_path / "training.html", tmp_path / "pauses")
