"""A right answer that does not fit its rule, and an answer that cannot be scored: neither ends a run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from made_benchmark import READER, YAML, Birds, row

from eval.benchmarks import program
from eval.benchmarks.catalogue import find_benchmark
from eval.benchmarks.parquet import write_parquet
from eval.benchmarks.reader import Reading, outcomes
from eval.benchmarks.row import Row
from eval.benchmarks.tally import RowFault, Tally
from eval.config import EvalConfig
from eval.redraw import redraw
from eval.run import Evaluation, evaluate
from experts.sandbox.result import SandboxResult
from maestro.cli.app import run
from registry.errors import UserFault
from registry.registry import Registry

COUNTS = YAML.replace("official: chartqa_official, lenient: chartqa", "official: tallyqa_official, lenient: tallyqa")
UNFIT = "gold answer does not fit the rule"


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Birds:
    """Twenty-five counts, of which the sixth is no number."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Birds(tmp_path, [row(n, question="say 7", answer="several" if n == 5 else "7") for n in range(25)])
    (tmp_path / "birds.yaml").write_text(COUNTS)
    return made


def start(birds: Birds, config: EvalConfig, **options: Any) -> Evaluation:
    registry = Registry.load(birds.folder / "registry.yaml")
    return asyncio.run(evaluate(config, registry, birds.run, **options))


def journal(birds: Birds) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (birds.run / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("name", "record", "what"),
    [
        (
            "tallyqa",
            {"question": "How many?", "answer": "several"},
            "'several' is not a whole number (tallyqa_official)",
        ),
        ("erqa", {"question": "Is it?", "answer": "yes"}, "'yes' names none of the options"),
        (
            "vlmsareblind",
            {"prompt": "Rows and columns?", "groundtruth": "x", "task": "Counting Grid - Blank Grids"},
            "'x' is not rows,columns (vlmsareblind)",
        ),
    ],
)
def test_a_shipped_benchmarks_unfit_right_answer_is_a_fault_of_its_row(
    tmp_path: Path, name: str, record: dict[str, str], what: str
) -> None:
    file = tmp_path / f"{name}.jsonl"
    file.write_text("\n" + json.dumps(record) + "\n")
    tally = Tally(name)
    [fault] = outcomes(find_benchmark(name), Reading(file, text_only=True), tally)
    assert isinstance(fault, RowFault)
    assert (fault.reason, str(fault.where)) == (UNFIT, f"{file}: line 2")
    assert what in fault.what
    assert tally.summary() == f"0 of 1 rows; skipped 1: {UNFIT} 1"


def test_each_of_several_right_answers_is_tried(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps({"question": "How many?", "answer": ["7", "several"]}) + "\n")
    [fault] = outcomes(find_benchmark("tallyqa"), Reading(tmp_path / "x.jsonl", text_only=True), Tally("tallyqa"))
    assert isinstance(fault, RowFault)
    assert fault.reason == UNFIT


def test_such_a_row_is_left_out_and_counted_and_the_run_ends_well(birds: Birds) -> None:
    done = start(birds, birds.config())
    assert (done.ran, done.results["skipped"], done.results["status"]) == (24, {UNFIT: 1}, "complete")
    assert done.results["baselines"]["reader"]["accuracy"] == 1.0


def test_under_fail_it_ends_the_reading_with_row_and_line_and_keeps_what_ran(birds: Birds) -> None:
    with pytest.raises(UserFault, match=UNFIT) as caught:
        start(birds, birds.config(data={"on_fault": "fail"}))
    assert str(caught.value.where).endswith("samples.jsonl: line 6")
    assert len(journal(birds)) == 5


def test_too_many_faulty_rows_name_the_benchmark_and_the_command_that_lists_them(birds: Birds) -> None:
    birds.write([row(n, question="say 7", answer="several" if n % 2 else "7") for n in range(30)])
    with pytest.raises(UserFault, match="more than 5 % of the rows are faulty") as caught:
        start(birds, birds.config())
    yaml, data = birds.folder / "birds.yaml", birds.folder / "data"
    assert caught.value.where == f"benchmark {yaml}"
    assert caught.value.fix == f"`maestro benchmarks check {yaml} --data-root {data}` lists every faulty row"


def test_a_check_names_the_row_and_goes_on(birds: Birds, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["benchmarks", "check", str(birds.folder / "birds.yaml"), "--data-root", str(birds.folder / "data")]
    assert run(words) == 2
    data = birds.folder / "data" / "samples.jsonl"
    assert capsys.readouterr().out.splitlines() == [
        f"{data}: line 6: {UNFIT}: gold answer 'several' is not a whole number (tallyqa_official)",
        f"birds: 24 of 25 rows; skipped 1: {UNFIT} 1",
        "the right answer scores 1 by tallyqa_official: 24 of 24; by tallyqa: 24",
    ]


def parquet_config(birds: Birds, answers: list[str]) -> EvalConfig:
    """Rows in verl's format, which nothing tries beforehand."""
    picture = (birds.folder / "data" / "images" / "a.png").read_bytes()
    rows = [
        Row(f"{n}", "integer", "say 7", (picture,), answer, None, "", "test", {}) for n, answer in enumerate(answers)
    ]
    write_parquet(rows, birds.folder / "rows.parquet", system_prompt=None)
    settings = {"parquet": {"test": str(birds.folder / "rows.parquet")}, "arms": READER, "run": str(birds.run)}
    return EvalConfig.model_validate({"benchmark": "integer", **settings, "concurrency": 2, "expert_concurrency": 2})


def test_an_answer_that_cannot_be_scored_is_an_error_of_its_own_and_the_run_goes_on(birds: Birds) -> None:
    done = start(birds, parquet_config(birds, ["7", "several", "8"]))
    entry = done.results["baselines"]["reader"]
    assert (entry["accuracy"], entry["n"], entry["errors"], entry["failures"]) == (0.5, 2, 1, {"scoring": 1})
    assert done.results["status"] == "incomplete"
    unscored = [line for line in journal(birds) if line["score"] is None]
    assert [(line["trajectory"]["row_id"], line["trajectory"]["answer"]) for line in unscored] == [("test/1", "7")]
    assert unscored[0]["unscored"] == "it cannot be scored: gold answer 'several' is not a whole number"
    assert "gold answer 'several' is not a whole number" in (birds.run / "report.html").read_text()
    assert redraw(birds.run).results["errors"] == 1


def test_what_could_not_be_scored_is_repeated_only_when_asked(birds: Birds) -> None:
    config = parquet_config(birds, ["7", "several", "8"])
    start(birds, config)
    assert start(birds, config).ran == 0
    assert start(birds, config, retry_errors=True).ran == 1


def test_a_check_without_a_sandbox_names_every_row(
    birds: Birds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {
        "qid": "q1",
        "function_signature": "def solution(a: int) -> int:",
        "test_script": "assert solution(2) == 4",
        "ground_truth_solution": "def solution(a):\n    return 2 * a",
        "task_type": "counting",
        "diagram": None,
    }
    (birds.folder / "code.jsonl").write_text(json.dumps(record) + "\n")
    monkeypatch.setattr(program, "run_python", lambda *_, **__: SandboxResult("refused", detail="no namespaces here"))
    words = ["benchmarks", "check", "humaneval_v", "--data-root", str(birds.folder / "code.jsonl"), "--text-only"]
    assert run(words) == 2
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "row humaneval_v/q1: cannot be scored: the program can't be run: no namespaces here"
    assert said[1] == "humaneval_v: 0 of 1 rows; skipped 1: cannot be scored 1"
