"""The `maestro` program as a whole: help, version, and how commands that go wrong end."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from maestro.cli import app as application
from maestro.cli.app import COMMANDS, SECOND_WORDS, Lazy, run
from registry.errors import UserFault

PROGRAM = """
import sys
from maestro.cli.app import run
code = run(sys.argv[1:])
heavy = {"torch", "transformers", "vllm", "verl", "ray", "cv2", "rapidocr", "matplotlib"} & set(sys.modules)
print("loaded:", sorted(heavy), file=sys.stderr)
sys.exit(code)
"""


def program(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, timeout=60)


def add_command(monkeypatch: pytest.MonkeyPatch, name: str, body: Any) -> None:
    """A subcommand that does `body`, in a module made for the test."""
    module = type(sys)(f"commands_of_{name}")
    module.__dict__[name] = body
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(application.COMMANDS, name, Lazy("made for a test", module.__name__, name))


def raising(error: BaseException) -> Any:
    def body() -> None:
        raise error

    return body


def ending_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, *words: str
) -> tuple[int, str]:
    add_command(monkeypatch, "failing", raising(error))
    code = run([*words, "failing"])
    out, err = capsys.readouterr()
    assert out == ""
    return code, err


def test_help_lists_every_command_within_a_second_and_loads_no_heavy_library() -> None:
    before = os.times()
    result = program("--help")
    after = os.times()
    assert result.returncode == 0
    assert [name for name in COMMANDS if name not in result.stdout] == []
    assert "loaded: []" in result.stderr
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    assert seconds < 1.0


def test_scoring_from_the_command_line_loads_no_heavy_library() -> None:
    result = program("score", "--benchmark", "chartqa", "--gold", "1234", "--answer", "1,234", "--json")
    assert json.loads(result.stdout)["value"] == 1.0
    assert "loaded: []" in result.stderr


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("maestro 0.")


def test_a_mistyped_command_is_refused_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scor"]) == 2
    assert "Did you mean 'score'?" in capsys.readouterr().err


def test_a_missing_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["score", "--gold", "1"]) == 2
    assert "Missing option '--benchmark'" in capsys.readouterr().err


def test_a_users_fault_is_one_message_without_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = UserFault("no expert of that name", where="demo.yaml:3", fix="did you mean 'Geometer'?")
    assert ending_of(monkeypatch, capsys, fault) == (
        2,
        "error: no expert of that name\n  where: demo.yaml:3\n  fix: did you mean 'Geometer'?\n",
    )


def test_a_value_error_and_a_missing_file_are_the_users_faults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending_of(monkeypatch, capsys, ValueError("horizon is 0")) == (2, "error: horizon is 0\n")
    missing = FileNotFoundError(errno.ENOENT, "No such file or directory", "a.json")
    expected = "error: No such file or directory: a.json\n  fix: check the path\n"
    assert ending_of(monkeypatch, capsys, missing) == (2, expected)


def test_a_full_disk_says_so_and_names_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "runs/demo/log.jsonl")
    code, message = ending_of(monkeypatch, capsys, full)
    assert code == 2
    assert message.startswith("error: no space left on the disk: runs/demo/log.jsonl\n  fix: free some space")


def test_an_interrupt_is_one_line_and_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, message = ending_of(monkeypatch, capsys, KeyboardInterrupt())
    assert code == 130
    assert message == "interrupted: what was finished is kept; run the same command again to go on\n"


def test_the_one_error_of_a_task_group_is_told_as_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = ExceptionGroup("unhandled errors in a TaskGroup", [UserFault("the image is empty")])
    assert ending_of(monkeypatch, capsys, group) == (2, "error: the image is empty\n")


def test_a_fault_of_the_program_is_told_apart_and_points_to_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, message = ending_of(monkeypatch, capsys, RuntimeError("boom"))
    assert code == 1
    assert message.startswith("internal error: RuntimeError: boom\n")
    assert "--debug" in message
    assert "Traceback" not in message


@pytest.mark.parametrize("words", [["--debug", "failing"], ["failing", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    add_command(monkeypatch, "failing", raising(UserFault("no such expert")))
    assert run(words) == 2
    message = capsys.readouterr().err
    assert message.startswith("Traceback")
    assert message.endswith("error: no such expert\n")


def test_debug_can_be_asked_for_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAESTRO_DEBUG", "1")
    assert "Traceback" in ending_of(monkeypatch, capsys, ValueError("x"))[1]


@pytest.mark.parametrize("words", [["registry", "show", "--json"], ["--version"]])
def test_a_reader_that_goes_away_is_no_error(words: list[str]) -> None:
    script = f"import maestro.cli.app as a, sys; sys.exit(a.run({words}))"
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-c", script], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")


def test_a_real_interrupt_ends_a_running_command(tmp_path: Path) -> None:
    (tmp_path / "slow_cmd.py").write_text(
        "import time\ndef slow():\n    print('started', flush=True)\n    time.sleep(30)\n"
    )
    script = (
        "import sys; from maestro.cli.app import COMMANDS, SECOND_WORDS, Lazy, run;"
        "COMMANDS['slow'] = Lazy('', 'slow_cmd', 'slow'); sys.exit(run(['slow']))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        # a test run in the background inherits an ignored SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "started\n"
    time.sleep(0.05)
    child.send_signal(2)
    _, message = child.communicate(timeout=30)
    assert (child.returncode, message.count("\n"), "interrupted" in message) == (130, 1, True)


def test_a_second_word_leads_to_another_function_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def judge(config: str) -> None:
        print(f"judge {config}")

    def report(run: str) -> None:
        print(f"report on {run}")

    add_command(monkeypatch, "judge", judge)
    sys.modules["commands_of_judge"].__dict__["report"] = report
    monkeypatch.setitem(application.SECOND_WORDS, ("judge", "report"), "report")
    assert run(["judge", "report", "runs/demo"]) == 0
    assert run(["judge", "configs/a.yaml"]) == 0
    assert capsys.readouterr().out == "report on runs/demo\njudge configs/a.yaml\n"


@pytest.mark.parametrize("words", [[name] for name in COMMANDS] + [list(pair) for pair in SECOND_WORDS], ids=" ".join)
def test_every_command_of_the_table_loads_and_explains_itself(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--help"]) == 0
    assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("train", {"plan", "preflight", "watch", "report", "analyse", "export"}),
        ("evaluate", {"report", "tables", "study", "replay", "merge", "compare", "power"}),
    ],
)
def test_help_of_a_command_with_second_words_lists_each_with_what_it_does(
    name: str, words: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"]) == 0
    lines = capsys.readouterr().out.partition(f"Or {name} ...")[2].splitlines()
    listed = {line.split()[1]: line.split()[2:] for line in lines if line[1:3] == "  " and line[3:4].strip()}
    assert set(listed) == words
    assert all(len(about) > 3 for about in listed.values())
    assert run([name, "report", "--help"]) == 0
    assert f"Or {name}" not in capsys.readouterr().out


def test_a_report_of_no_run_is_refused_with_the_nearest_name_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "journal.jsonl").touch()
    for more in ([], ["--out", str(tmp_path / "all.html")]):
        result = program("evaluate", "report", str(tmp_path / "demoo"), *more)
        assert result.returncode == 2
        assert f"error: there is no such run\n  where: {tmp_path}/demoo\n  fix: did you mean {tmp_path}/demo?" in (
            result.stderr
        )
        assert "loaded: []" in result.stderr
