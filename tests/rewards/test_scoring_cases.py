"""The case tables of the scorers: what people and models write, and whether it is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewards import score

CASES = Path(__file__).resolve().parent.parent / "cases"


def table(name: str) -> Any:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", table("choice")["cases"], ids=lambda case: repr(case["answer"]))
def test_choice_reads_only_letters_and_texts_of_this_questions_options(case: dict[str, Any]) -> None:
    result = score("choice", case["gold"], case["answer"], choices=table("choice")["choices"])
    assert (result.value, result.answer) == (case["value"], case["read"])


def _number_cases() -> list[tuple[str, str, str, int]]:
    keys = ("gold", "answer")
    return [(c["gold"], c["answer"], b, v) for c in table("numbers") for b, v in c.items() if b not in keys]


@pytest.mark.parametrize(("gold", "answer", "benchmark", "value"), _number_cases())
def test_numbers_are_judged_by_the_rule_of_their_task(
    gold: str, answer: str, benchmark: str, value: int
) -> None:
    assert score(benchmark, gold, answer).value == value


@pytest.mark.parametrize("case", table("exact"), ids=lambda case: f"{case['gold']}|{case['answer']!r}")
def test_exact_ignores_spelling_but_never_accepts_a_part(case: dict[str, Any]) -> None:
    assert score("exact", case["gold"], case["answer"]).value == case["value"]


@pytest.mark.parametrize("name", ["vlmsareblind", "embedded"])
def test_every_task_group_has_its_answer_format(name: str) -> None:
    cases = table(name)
    judged = [(c, score(name, c["gold"], c["answer"], group=c["group"]).value) for c in cases]
    assert [case for case, value in judged if value != case["value"]] == []
