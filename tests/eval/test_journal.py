"""What is written stays written: kills, half lines, full disks, second writers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from eval.journal import Journal
from registry.errors import UserFault

RIGHT = {"value": 1.0, "answer": "42", "explanation": "equal"}


def write(path: Path, trajectories: list[dict]) -> None:
    with Journal(path) as journal:
        for trajectory in trajectories:
            journal.append(arm="after", split="test", score=RIGHT, trajectory=trajectory)


def rows(path: Path) -> list[str]:
    return [json.loads(line)["trajectory"]["row_id"] for line in path.read_text().splitlines()]


def test_what_was_appended_is_there_when_opened_again(tmp_path: Path, make_trajectory) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [make_trajectory("a"), make_trajectory("b", observation="左肺 \ud83d")])
    with Journal(path) as journal:
        assert list(journal.facts) == [("after", "a", 0), ("after", "b", 0)]
        assert journal.repair is None
        assert journal.read(("after", "b", 0))["trajectory"]["turns"][0]["observation"]["text"] == "左肺 \ud83d"


@pytest.mark.parametrize("cut", [2, 40, 600])
def test_a_line_cut_in_the_middle_is_repaired_and_only_that_row_is_lost(
    tmp_path: Path, make_trajectory, cut: int
) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [make_trajectory("a"), make_trajectory("b")])
    path.write_bytes(path.read_bytes()[:-cut])
    write(path, [make_trajectory("c")])
    assert rows(path) == ["a", "c"]


def test_a_last_line_that_lacks_only_its_line_end_is_kept(tmp_path: Path, make_trajectory) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [make_trajectory("a"), make_trajectory("b")])
    path.write_bytes(path.read_bytes()[:-1])
    write(path, [make_trajectory("c")])
    assert rows(path) == ["a", "b", "c"]


def test_a_repair_is_reported(tmp_path: Path, make_trajectory) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [make_trajectory("a")])
    with path.open("ab") as file:
        file.write(b'{"version":1,"arm":"af')
    with Journal(path) as journal:
        assert journal.repair is not None
        assert journal.repair.dropped_bytes == 22


def test_a_broken_line_before_the_last_is_refused_with_its_number(tmp_path: Path, make_trajectory) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [make_trajectory("a"), make_trajectory("b")])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{broken}\n" + lines[1])
    with pytest.raises(UserFault, match=r"journal\.jsonl:2"):
        Journal(path)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path), pytest.raises(UserFault, match="another evaluation"):
        Journal(path)
    Journal(path).close()


def test_a_row_that_runs_again_replaces_its_earlier_line(tmp_path: Path, make_trajectory) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append(arm="after", split="test", score=None, trajectory=make_trajectory("a", valid=False))
        journal.append(arm="after", split="test", score=RIGHT, trajectory=make_trajectory("a"))
    with Journal(path) as journal:
        assert journal.facts["after", "a", 0].value == 1.0
        assert journal.read(("after", "a", 0))["score"] == RIGHT


def test_a_full_disk_is_told_and_leaves_no_half_line(tmp_path: Path, make_trajectory, monkeypatch) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.append(arm="after", split="test", score=RIGHT, trajectory=make_trajectory("a"))
    before = path.read_bytes()
    real = os.write
    room = [100]

    def nearly_full(descriptor: int, data: memoryview) -> int:
        if not room:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[: room.pop()])

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(UserFault, match="No space left on device"):
        journal.append(arm="after", split="test", score=RIGHT, trajectory=make_trajectory("b"))
    monkeypatch.undo()
    assert path.read_bytes() == before
    journal.append(arm="after", split="test", score=RIGHT, trajectory=make_trajectory("c"))
    journal.close()
    assert rows(path) == ["a", "c"]


def test_a_process_killed_hard_loses_at_most_the_line_it_was_writing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    script = textwrap.dedent(f"""
        import sys, itertools
        sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[2])]!r}
        from conftest import make_trajectory
        from pathlib import Path
        from eval.journal import Journal
        journal = Journal(Path({str(path)!r}), sync_lines=10**9, sync_seconds=10**9)
        score = {RIGHT!r}
        for i in itertools.count():
            journal.append(arm="after", split="test", score=score, trajectory=make_trajectory(f"row-{{i}}"))
            print(i, flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    deadline = time.monotonic() + 30
    seen = -1
    while seen < 50 and time.monotonic() < deadline:
        seen = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    seen = max([seen, *map(int, process.stdout.read().split()[:-1])])
    process.wait()
    with Journal(path) as journal:
        assert len(journal.facts) >= seen + 1
