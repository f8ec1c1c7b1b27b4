"""Outputs are whole or not there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from eval.report import page
from eval.whole_file import write_whole
from maestro.cli.faults import ending


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_text_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "new" / "results.json"
    assert write_whole(file, "old") == file
    write_whole(file, "neu: ä")
    assert file.read_text(encoding="utf-8") == "neu: ä"
    assert os.listdir(file.parent) == ["results.json"]


def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")
    monkeypatch.setattr(page, "render", lambda material: "new")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError) as caught:
        page.write_report(None, file)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == ["report.html"] and file.read_text() == "old"
    told = ending(caught.value)
    assert told.exit_code == 2
    assert told.message == (
        f"error: no space left on the disk: {file}\n  fix: free some space, then run the same command again"
    )
