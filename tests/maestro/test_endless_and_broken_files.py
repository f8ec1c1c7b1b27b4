"""Files and streams that never end, are cut off or hold no text: one message, no memory filled, JSON stays JSON."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from maestro.cli import parse_cmd, reward_cmd
from maestro.cli.app import run


def test_an_endless_trajectory_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reward_cmd, "MAX_BYTES", 1000)
    assert run(["reward", "--trajectory", "/dev/zero"]) == 2
    assert "a line of more than 1000 bytes is no record" in capsys.readouterr().err


def test_a_turn_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(parse_cmd, "MAX_BYTES", 1000)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"<answer>" + b"9" * 5000)))
    assert run(["parse"]) == 2
    assert "a turn of more than 1000 bytes is not read" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"turns": [', b"\xff\xfe\x00", b"[" * 100_000, b"9" * 6000])
def test_what_is_no_trajectory_record_is_refused(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "record.jsonl"
    file.write_bytes(content)
    assert run(["reward", "--trajectory", str(file), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert str(file) in err


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_half_characters_and_poor_terminals_leave_json_whole(encoding: str) -> None:
    answer = b"4 \xff \xf0\x9f\x94\xac \xc3\xa4"
    words = [b"score", b"--benchmark", b"chartqa", b"--gold", b"4", b"--answer", answer, b"--json"]
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"maestro.cli.app", *words],
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode(encoding))["answer"] == "4 \udcff 🔬 ä"
