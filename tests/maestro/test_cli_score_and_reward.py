"""`maestro score` and `maestro reward`: what they print and how they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maestro.cli.app import run

Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *words: str) -> Any:
    assert run([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    return json.loads(out)


def refused(capsys: Capture, *words: str) -> str:
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert (out, "Traceback" in err) == ("", False)
    return err


def record(**fields: Any) -> dict[str, Any]:
    search = {
        "type": "search",
        "expert": "Chart-Reader",
        "skill": "Chart_Problem_Solver",
        "query": "How high?",
    }
    turns = [
        {"text": "<search>Chart-Reader@@Chart_Problem_Solver: How high?</search>", "action": search},
        {"text": "<answer>42</answer>", "action": {"type": "answer", "text": "42"}},
    ]
    head = {"id": "r1#0", "benchmark": "embedded", "group": "bar_value", "ground_truth": "42"}
    return {**head, "turns": turns, "stop": "answered", "valid": True, **fields}


def test_score_prints_one_object(capsys: Capture) -> None:
    words = [
        "score",
        "--benchmark",
        "vstar",
        "--gold",
        "B",
        "--answer",
        "（B）",
        "--choices",
        '["red", "blue"]',
    ]
    assert printed(capsys, *words) == {"value": 1.0, "answer": "B", "explanation": "expected B, read B"}


def test_score_takes_a_task_group_and_negative_numbers(capsys: Capture) -> None:
    words = ["score", "--benchmark", "vlmsareblind", "--gold", "5,6", "--answer", "rows={5} columns={6}"]
    assert printed(capsys, *words, "--group", "counting grid - word grids")["value"] == 1.0
    assert printed(capsys, "score", "--benchmark", "number", "--gold", "-3", "--answer", "3")["value"] == 0.0


def test_score_for_people_is_one_line(capsys: Capture) -> None:
    assert run(["score", "-b", "number", "-g", "50", "-a", "50%"]) == 0
    assert capsys.readouterr().out == "0  expected 50, read 50%: only one of them is a percentage\n"


@pytest.mark.parametrize("choices", ["[1", '"red"', "[[1]]"])
def test_score_refuses_choices_that_are_no_list(capsys: Capture, choices: str) -> None:
    message = refused(capsys, "score", "-b", "choice", "-g", "A", "-a", "A", "--choices", choices)
    assert message.startswith("error: --choices is not")
    assert message.endswith('  where: --choices\n  fix: write a list such as \'["red", "blue"]\'\n')


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["-b", "vstar", "-g", "Z", "-a", "A", "--choices", '["red", "blue"]'],
            "gold answer 'Z' names none of the options; they are ['red', 'blue']\n  where: --gold\n"
            "  fix: give a letter from A to B or the text of an option, or mend --choices\n",
        ),
        (
            ["-b", "tallyqa", "-g", "many", "-a", "3"],
            "gold answer 'many' is not a whole number\n  where: --gold\n"
            "  fix: write it as rows of tallyqa have it (docs/rewards.md), with --choices where they have options\n",
        ),
        (
            ["-b", "vstar", "-g", "A", "-a", "A", "--choices", json.dumps([str(n) for n in range(27)])],
            "a choice question needs 1 to 26 options, this one has 27\n  where: --choices\n"
            "  fix: give the row's options, 26 at most\n",
        ),
        (
            ["-b", "a: b", "-g", "A", "-a", "A"],
            "unknown benchmark 'a: b'\n  where: --benchmark\n  fix: known are ",
        ),
    ],
)
def test_score_names_the_option_that_does_not_fit_and_a_fix(capsys: Capture, words: list[str], message: str) -> None:
    assert refused(capsys, "score", *words).startswith(f"error: {message}")


def test_score_refuses_an_unknown_benchmark_with_the_nearest_name(capsys: Capture) -> None:
    assert "did you mean 'chartqa'?" in refused(capsys, "score", "-b", "chartq", "-g", "1", "-a", "1")


def test_reward_of_a_record_over_several_lines(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "trajectory.json"
    file.write_text(json.dumps(record(), indent=2), encoding="utf-8")
    found = printed(capsys, "reward", "--trajectory", str(file))
    assert (found["answer"], found["format"], found["total"], found["valid"]) == (1.0, 0.0, 1.0, True)
    assert found["explanation"].startswith("answer 1 (expected 42, read 42: equal within 2 %); format 0 (")


def test_reward_of_one_line_of_many(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "trajectories.jsonl"
    failed = record(valid=False, stop="infrastructure", error="turn 1: connection refused")
    file.write_text(f"{json.dumps(record())}\n\n{json.dumps(failed)}\n", encoding="utf-8")
    assert printed(capsys, "reward", "--trajectory", str(file))["total"] == 1.0
    second = printed(capsys, "reward", "--trajectory", str(file), "--line", "2")
    assert [second[key] for key in ("answer", "format", "total", "valid")] == [None, None, None, False]


@pytest.mark.parametrize("content", [b"", b"[]", b"{half", b"\xff\xfe\x00", b"3\n"])
def test_reward_refuses_a_file_without_records(tmp_path: Path, capsys: Capture, content: bytes) -> None:
    file = tmp_path / "trajectory.json"
    file.write_bytes(content)
    assert str(file) in refused(capsys, "reward", "--trajectory", str(file))


def test_reward_refuses_a_record_without_gold_answer_and_names_the_file(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "trajectory.json"
    file.write_text(json.dumps(record(ground_truth=None)), encoding="utf-8")
    message = refused(capsys, "reward", "--trajectory", str(file))
    assert message == (f"error: trajectory r1#0: no 'ground_truth' to score by\n  where: {file}, record 1\n")


def test_reward_refuses_a_missing_file(capsys: Capture) -> None:
    assert refused(capsys, "reward", "--trajectory", "nosuch.json").startswith("error: No such file")
