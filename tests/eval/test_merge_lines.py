"""The lines of many journals: copied as they were written, with few files open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from eval.journal import Journal
from eval.merge_lines import JournalLines
from registry.errors import UserFault

RIGHT = {"value": 1.0, "answer": "42", "explanation": ""}


def write(path: Path, make_trajectory, *rows: str, valid: bool = True) -> Path:
    with Journal(path) as journal:
        for row in rows:
            score: dict[str, Any] | None = RIGHT if valid else None
            journal.append(arm="a", split="test", score=score, trajectory=make_trajectory(row, valid=valid))
    return path


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_few_files_are_open_however_many_journals_there_are(tmp_path: Path, make_trajectory) -> None:
    paths = [write(tmp_path / f"{index}.jsonl", make_trajectory, f"row-{index}") for index in range(40)]
    before = open_files()
    with JournalLines(paths, most_open=3) as lines:
        copied = [lines.copy(index, ("a", f"row-{index}", 0)) for _ in range(2) for index in range(40)]
        assert open_files() == before + 3
    assert open_files() == before
    assert copied == [path.read_bytes() for path in paths] * 2


def test_the_last_line_of_a_trajectory_counts_and_gets_its_line_end(tmp_path: Path, make_trajectory) -> None:
    path = write(tmp_path / "j.jsonl", make_trajectory, "x", valid=False)
    write(path, make_trajectory, "y", "x")
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second + third.removesuffix(b"\n"))
    with JournalLines([path]) as lines:
        assert (lines.total, lines.finished()) == (2, {("a", "x", 0), ("a", "y", 0)})
        assert lines.copy(0, ("a", "x", 0)) == third
        assert lines.place(0, ("a", "z", 0)) is None
    path.write_bytes(first + second + third + b'{"half')
    with JournalLines([path]) as lines:
        assert lines.copy(0, ("a", "x", 0)) == third


def test_a_journal_that_is_missing_or_shrinks_is_told(tmp_path: Path, make_trajectory) -> None:
    with pytest.raises(UserFault, match="the journal cannot be read"):
        JournalLines([tmp_path / "no.jsonl"])
    path = write(tmp_path / "j.jsonl", make_trajectory, "x")
    with JournalLines([path]) as lines:
        path.write_bytes(b"")
        with pytest.raises(UserFault, match="became shorter while it was read"):
            lines.copy(0, ("a", "x", 0))
