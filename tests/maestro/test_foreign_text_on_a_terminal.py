"""Words of experts, questions and servers are shown on a terminal, and never steer it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from maestro.cli.app import run
from maestro.cli.plain_text import plain
from maestro.cli.train_cmd import Display


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("red \x1b[31m and a title \x1b]0;x\x07", "red �[31m and a title �]0;x�"),
        ("\x9b2J a\rb\b", "�2J a�b�"),
        ("abc\u202egnp.exe", "abc�gnp.exe"),
        ("lone \ud800", "lone �"),
        ("two\nlines\tof 12\u00a0000 €, 柱状图, 👩\u200d🔬", "two\nlines\tof 12\u00a0000 €, 柱状图, 👩\u200d🔬"),
    ],
)
def test_what_would_steer_a_terminal_becomes_visible(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_an_error_message_does_not_pass_escape_sequences_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text('experts:\n  "Read\\e[2Jer": {}\n', encoding="utf-8")
    assert run(["registry", "check", str(file)]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_turn_that_was_read_does_not_pass_escape_sequences_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"<answer>4\x1b[2J</answer>")))
    assert run(["parse"]) == 0
    assert capsys.readouterr().out == "action  answer\ntext    4�[2J\n"


def test_a_warning_that_quotes_an_expert_is_no_markup() -> None:
    out = io.StringIO()
    Display(Console(file=out, width=200)).warn("Reader answered 500: [/b] [link=x]\x1b[2J")
    assert out.getvalue() == "warning: Reader answered 500: [/b] [link=x]�[2J\n"
