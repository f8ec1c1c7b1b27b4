"""Which rule scores a row: the evaluation's own benchmark, a shipped one, or the rule of that name."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_benchmark import YAML

from eval.benchmarks.catalogue import load_benchmark
from eval.judge import Judge, judge
from orchestrator.task import Task
from registry.errors import UserFault


def task(benchmark: str, gold: str | None = "1234") -> Task:
    return Task("r1", benchmark, "", "How many?", (), gold)


def test_a_row_of_the_evaluations_own_benchmark_is_scored_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "birds.yaml").write_text(YAML)
    found = Judge(load_benchmark(tmp_path / "birds.yaml")).verdict(task("birds"), "1,234")
    assert (found.official.value, found.lenient.value, found.differ) == (0.0, 1.0, True)


def test_a_row_of_a_shipped_benchmark_is_scored_by_its_official_rule_with_the_lenient_one_beside_it() -> None:
    found = judge.verdict(task("ChartQA"), "1,234")
    assert (found.official.value, found.lenient.value) == (0.0, 1.0)


def test_a_row_under_the_name_of_a_rule_is_scored_by_that_rule_alone() -> None:
    found = judge.verdict(task("exact", "cat"), "cat")
    assert (found.official.value, found.differ) == (1.0, False)


def test_only_programs_take_seconds() -> None:
    assert judge.runs_programs(task("humaneval_v"))
    assert not judge.runs_programs(task("chartqa"))
    assert not judge.runs_programs(task("exact"))


@pytest.mark.parametrize(
    ("benchmark", "gold", "said"), [("exact", None, "no right answer"), ("nothing", "1", "nothing")]
)
def test_a_row_that_cannot_be_scored_is_named(benchmark: str, gold: str | None, said: str) -> None:
    with pytest.raises(UserFault, match=said) as caught:
        judge.verdict(task(benchmark, gold), "1")
    assert caught.value.where == "row r1"
