"""A job that died of a full disk is told from one that died of something else."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import pytest

from train.disk import ran_full

Usage = namedtuple("Usage", "total used free")
TORCH = "RuntimeError: inline_container.cc:668 . PytorchStreamWriter failed writing file data/12: file write failed"


@pytest.mark.parametrize(
    "text", ["OSError: [Errno 28] No space left on device: '/x'", "OSError: [Errno 122] Disk quota exceeded"]
)
def test_the_systems_own_words_are_known_even_lines_before_the_end(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"{text}\n" + "ray: a worker died\n" * 500)
    assert ran_full(log, tmp_path)


def test_a_checkpoint_that_torch_could_not_write_counts_on_a_full_disk_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text(TORCH)
    for free, full in ((2**20, True), (2**40, False)):
        monkeypatch.setattr("train.disk.shutil.disk_usage", lambda _, free=free: Usage(2**41, 0, free))
        assert ran_full(log, tmp_path) is full


def test_another_fault_or_no_log_is_no_full_disk(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("ValueError: no\n")
    assert not ran_full(tmp_path / "log", tmp_path)
    assert not ran_full(tmp_path / "absent", tmp_path)
