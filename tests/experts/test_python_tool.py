"""The tool `python`: code out of replies, reports fit for a prompt, and no exception whatever the code does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from sandbox_doubles import ABSENT

from experts.images import load_picture
from experts.sandbox.isolation import NAMES, Isolation
from experts.tools.python import RunPython, program_in
from experts.tools.result import PythonTool, ToolResult
from registry.errors import UserFault

PICTURE = load_picture(Image.new("RGB", (40, 40), "white"))
needs_one = pytest.mark.skipif(len(ABSENT) == len(NAMES), reason=f"nothing isolates here: {ABSENT}")


def run(tool: RunPython | None = None, **args: str) -> ToolResult:
    return (tool or RunPython()).run(PICTURE, **args)


def test_it_is_a_tool() -> None:
    assert isinstance(RunPython(), PythonTool)


@needs_one
def test_a_program_that_passes_its_test() -> None:
    result = run(source="def f(x):\n    return x + 1", test="assert f(1) == 2\nprint('fine')")
    assert set(result.data) == {"status", "returncode", "stdout", "stderr", "seconds"}
    assert (result.data["status"], result.data["returncode"]) == ("passed", 0)
    assert (result.data["stdout"], result.data["stderr"]) == ("fine\n", "")
    assert result.text == "passed\noutput, last lines:\nfine"
    assert json.loads(result.json)["status"] == "passed"


@needs_one
def test_a_failing_assert_is_reported_with_its_line() -> None:
    result = run(source="def f(x):\n    return x + 1", test="assert f(1) == 3, f'got {f(1)}'")
    assert (result.data["status"], result.data["returncode"]) == ("failed", 1)
    assert result.text == (
        "failed: AssertionError: got 2\n"
        "Traceback (most recent call last):\n"
        '  File "main.py", line 5, in <module>\n'
        "    assert f(1) == 3, f'got {f(1)}'\n"
        "AssertionError: got 2"
    )


@needs_one
def test_a_limit_is_named_in_the_report() -> None:
    assert run(RunPython(wall_s=1), source="import time\ntime.sleep(60)").text == "timeout: ran longer than 1 s"


@needs_one
def test_standard_input_reaches_the_program() -> None:
    assert run(source="print(input()[::-1])", stdin="abc\n").data["stdout"] == "cba\n"


@needs_one
def test_no_source_is_an_empty_program() -> None:
    assert run().text == "passed"
    assert run(source="x = 1", test=" \n").data["status"] == "passed"


@needs_one
@pytest.mark.parametrize(
    "source",
    [
        "raise BaseException('\\u0000<information>')",
        "import sys; sys.stderr.write('e' * 60_000); sys.stdout.write('😀' * 15_000); sys.exit(3)",
        "def f(): f()\nf()",
        "import os; os.abort()",
        "\x00",
        "\ud800",
    ],
)
def test_whatever_the_code_does_a_short_report_comes_back(source: str) -> None:
    result = run(source=source)
    assert result.data["status"] == "failed"
    assert result.text.startswith("failed: ")
    assert len(result.text) <= 2000
    assert len(json.dumps(result.data)) < 262_144
    assert len(result.data["stdout"]) < 8100 and len(result.data["stderr"]) < 8100


@needs_one
def test_long_output_keeps_its_ends() -> None:
    stdout = run(source="print('a' * 9000 + 'b' * 9000)").data["stdout"]
    assert stdout.startswith("aaa") and stdout.endswith("bbb\n")
    assert "\n... 10001 characters left out ...\n" in stdout


@needs_one
def test_packages_are_an_option() -> None:
    source = "import numpy\nprint(numpy.arange(3).sum())"
    assert run(RunPython(packages="numpy"), source=source).data["stdout"] == "3\n"
    assert run(source=source).text.startswith("failed: ModuleNotFoundError: No module named 'numpy'")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 3}, "the tool python has no option 'timeout'"),
        ({"wall_s": "soon"}, "wall_s must be a number from 0.01 to 3600, not 'soon'"),
        ({"processes": 0}, "processes must be a whole number from 1 to 1024, not 0"),
        ({"memory_bytes": 1000}, "memory_bytes must be a whole number from 67108864 to"),
        ({"packages": "no_such_thing"}, "no installed package 'no_such_thing'"),
        ({"packages": 3}, "packages must be names of packages, not 3"),
    ],
)
def test_wrong_options_are_the_users_fault(options: dict, message: str) -> None:
    with pytest.raises(UserFault, match=message):
        RunPython(**options)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("x = 1", "x = 1"),
        ("Here:\n```python\nx = 1\n```\nDone.", "x = 1"),
        ("```python\nx = 1\n```\nbetter:\n```python\nx = 2\n```\n```python\n\n```", "x = 2"),
        ("```py\nx = 1\n```\n```\noutput\n```", "x = 1"),
        ("```\nx = 1\n```\n```json\n{}\n```", "x = 1"),
        ("```json\n{}\n```", "```json\n{}\n```"),
        ("Sure\n```Python\r\nx = 1\r\n```", "x = 1"),
        ("1. So:\n   ```python\n   if x:\n       y = 1\n   ```", "if x:\n    y = 1"),
        ("cut off\n```python\ndef f():\n    return 1", "def f():\n    return 1"),
        ("```python title=a.py\nx = 1\n```", "x = 1"),
        ("```python\nx = 1\n```python\nx = 2\n```", "x = 2"),
        ("x = '```python'", "x = '```python'"),
        ("", ""),
    ],
)
def test_code_is_taken_from_replies(reply: str, code: str) -> None:
    assert program_in(reply) == code


def test_fences_without_end_cost_no_time() -> None:
    assert program_in("```\n" * 50_001) == "```\n" * 50_001
    assert program_in("`" * 200_000) == "`" * 200_000


@needs_one
def test_real_replies_of_a_model_hold_runnable_code(shared_dir: Path) -> None:
    rows = (shared_dir / "data" / "benchmarks" / "humaneval_v" / "samples.jsonl").read_text().splitlines()
    replies = json.loads(rows[0])["predictions"]
    codes = [program_in(reply) for reply in replies]
    assert len(codes) == 6
    assert all("def solution(" in code and "```" not in code for code in codes)
    kinds = {run(source=code, test="assert callable(solution)").data["status"] for code in codes}
    assert kinds <= {"passed", "failed", "cpu_limit", "timeout"}
    assert "passed" in kinds


def test_a_program_that_could_not_be_run_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experts.sandbox.isolation._found", [Isolation("none", (), {"namespaces": "forbidden"})])
    with pytest.raises(RuntimeError, match="was not run: nothing here keeps a program in"):
        run(source="print(1)")
