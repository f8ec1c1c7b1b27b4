"""Verdicts: the published rule and the lenient one beside it, programs run, and real rows' gold answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval.benchmarks.catalogue import find_benchmark
from eval.benchmarks.item import Item
from eval.benchmarks.program import join_program, program_in, run_tests
from eval.benchmarks.reader import Reading, outcomes, read_items
from eval.benchmarks.scoring import verdict
from eval.benchmarks.tally import Tally

DOUBLE = join_program(
    'def solution(a: int) -> int:\n    """Twice as much."""', "assert solution(2) == 4\nassert solution(5) == 10"
)


def test_both_figures_are_given_where_the_published_rule_misjudges() -> None:
    found = verdict(find_benchmark("erqa"), "B", "(B)")
    assert (found.official.value, found.lenient.value, found.differ) == (0.0, 1.0, True)
    found = verdict(find_benchmark("chartqa"), "1234", "1,234")
    assert (found.official.value, found.lenient.value) == (0.0, 1.0)


def test_lenient_never_takes_away_what_the_published_rule_gives() -> None:
    found = verdict(find_benchmark("vlmsareblind"), "t", "the letter is n", group="circled letter")
    assert (found.official.value, found.lenient.value, found.differ) == (1.0, 1.0, False)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("```python\ndef solution(a):\n    return 2 * a\n```", 1.0),
        ("Twice:\n```python\ndef solution(a):\n    return a\n```", 0.0),
        ("    return a + a", 1.0),
        ("import sys\nsys.exit(0)", 0.0),
        ("def solution(a)", 0.0),
        ("", 0.0),
    ],
)
def test_a_program_is_right_when_the_tests_pass(answer: str, value: float) -> None:
    assert run_tests(DOUBLE, answer).value == value


def test_a_program_that_is_told_why_it_failed() -> None:
    assert run_tests(DOUBLE, "def solution(a):\n    return missing").explanation == (
        "tests failed: NameError: name 'missing' is not defined"
    )


def test_example_runs_in_the_answer_are_left_out() -> None:
    code = "import math\ndef solution(a):\n    return math.pi\nprint(solution(input()))"
    assert program_in(code, "") == "import math\ndef solution(a):\n    return math.pi"


def test_a_row_of_programs_is_read_scored_and_told_apart(tmp_path: Path) -> None:
    row = {
        "qid": "q1",
        "function_signature": "def solution(a: int) -> int:",
        "test_script": "assert solution(2) == 4",
        "ground_truth_solution": "def solution(a):\n    return 2 * a",
        "task_type": "counting",
        "diagram": None,
    }
    broken = {**row, "qid": "q2", "test_script": "print(solution(2))"}
    (tmp_path / "test.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(broken)}\n")
    spec, tally = find_benchmark("humaneval_v"), Tally("humaneval_v")
    items = [one for one in outcomes(spec, Reading(tmp_path, text_only=True), tally) if isinstance(one, Item)]
    assert tally.summary() == "1 of 2 rows; skipped 1: bad gold answer 1"
    task = items[0].task()
    assert task.question.startswith("Complete this Python function.")
    assert verdict(spec, str(task.ground_truth), items[0].row.extra["solution"]).official.value == 1.0


REAL = [
    ("chartqa", "chartqa", 20),
    ("geometry3k", "geometry3k", 6),
    ("geometry3k", "geometry3k_mathvista_text_only", 20),
    ("mathvision", "mathvision", 20),
    ("microvqa", "microvqa_demo_text_only", 10),
    ("ocrbench", "ocrbench", 20),
    ("slake", "slake_text_only", 20),
    ("vlmsareblind", "vlmsareblind", 17),
]


@pytest.mark.parametrize(("name", "folder", "rows"), REAL)
def test_real_rows_score_1_with_their_gold_answer_and_0_with_nonsense(
    shared_dir: Path, name: str, folder: str, rows: int
) -> None:
    data = shared_dir / "data" / "benchmarks" / folder
    if not data.is_dir():
        pytest.skip(f"no folder {folder} among the real rows")
    spec = find_benchmark(name)
    items = list(read_items(spec, Reading(data, on_fault="fail", text_only=folder.endswith("text_only"))))
    assert len(items) == rows
    for item in items:
        task = item.task()
        assert task.ground_truth is not None
        for gold in item.row.extra.get("answers", [item.row.answer]):
            found = verdict(spec, task.ground_truth, gold, choices=task.choices, group=task.group)
            # A bare "5,6" is none of the three forms in which that harness reads rows and columns.
            bare_grid = task.group == "counting grid"
            assert (found.official.value, found.lenient.value) == (0.0 if bare_grid else 1.0, 1.0), item.row.id
        wrong = verdict(spec, task.ground_truth, "zzz", choices=task.choices, group=task.group)
        assert wrong.lenient.value == 0.0, item.row.id


def test_the_real_row_of_programs_without_tests_is_told_to_have_no_gold_answer(shared_dir: Path) -> None:
    data = shared_dir / "data" / "benchmarks" / "humaneval_v"
    if not data.is_dir():
        pytest.skip("no folder humaneval_v among the real rows")
    tally = Tally("humaneval_v")
    assert [str(one).split("\n")[0] for one in outcomes(find_benchmark("humaneval_v"), Reading(data), tally)] == [
        "no gold answer"
    ]
