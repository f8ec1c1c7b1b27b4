"""What `score` promises beside single cases: names, several gold answers, faults of rows, limits, speed."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards import benchmarks, score

GOLDS = dict.fromkeys(["choice", "vstar", "hrbench", "erqa", "microvqa", "msearthmcq"], "B")
GOLDS |= {f"{name}_official": "B" for name in ("vstar", "hrbench", "erqa", "microvqa", "msearthmcq", "geometry3k")}
GOLDS |= {"letter": "n", "grid": "2,3", "yes_no": "Yes"}
OPTIONS = ["one", "two", "three", "four"]


def options_of(name: str) -> list[str] | None:
    return OPTIONS if GOLDS.get(name) == "B" else None


@pytest.mark.parametrize(
    ("written", "name"),
    [("ChartQA", "chartqa"), ("VLMs are blind", "vlmsareblind"), ("HR-Bench 4K", "hrbench"), ("V*", "vstar")],
)
def test_benchmark_names_are_read_in_any_spelling(written: str, name: str) -> None:
    options = OPTIONS if name in GOLDS else None
    gold = GOLDS.get(name, "3")
    assert score(written, gold, gold, choices=options) == score(name, gold, gold, choices=options)


def test_an_unknown_benchmark_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="unknown benchmark 'chartq': did you mean 'chartqa'"):
        score("chartq", "1", "1")


def test_any_of_several_gold_answers_is_right() -> None:
    assert score("chartqa", ["Go-Jek", "Gojek"], "gojek").value == 1.0
    assert score("ocrbench", ["99750", "99 750", "99,750"], "It was 99,750 girls").value == 1.0


@pytest.mark.parametrize("gold", ["", "  ", [], [""]])
def test_a_row_without_gold_answer_is_an_error(gold: str | list[str]) -> None:
    with pytest.raises(ValueError, match="no gold answer"):
        score("exact", gold, "x")


def test_no_answer_and_an_empty_answer_are_wrong() -> None:
    assert score("exact", "Blue", None).value == 0.0
    assert score("exact", "Blue", "").value == 0.0
    assert score("ocrbench", "Blue", " \n ").value == 0.0


def test_an_open_row_graded_as_multiple_choice_is_an_error() -> None:
    with pytest.raises(ValueError, match="open question"):
        score("choice", "left lung", "left lung")
    with pytest.raises(ValueError, match="none of the options"):
        score("choice", "left lung", "A", choices=OPTIONS)


def test_the_rows_options_decide_whether_mathematics_is_multiple_choice() -> None:
    roots = ["$\\sqrt{6}$", "3", "$\\frac{3 \\sqrt{3}}{2}$", "$2 \\sqrt{2}$"]
    assert score("mathvision", "C", "C", choices=roots).value == 1.0
    assert score("mathvision", "C", "\\frac{3\\sqrt{3}}{2}", choices=roots).answer == "C"
    assert score("geometry3k", "38", "B", choices=["28", "38", "52", "62"]).value == 1.0
    assert score("mathvision", "13", "x = 13.").value == 1.0


def test_microvqa_takes_the_number_of_an_option() -> None:
    parts = ["spindle pole", "midbody", "furrow"]
    assert score("microvqa", "midbody", "(2)", choices=parts).value == 1.0
    assert score("choice", "midbody", "(2)", choices=parts).value == 0.0


def test_f1_counts_characters_in_chinese_and_words_elsewhere() -> None:
    assert score("f1", "左肺上叶", "左肺").value == pytest.approx(2 * 2 / (4 + 2))
    assert score("f1", "upper left lobe", "left lobe").value == pytest.approx(0.8)
    assert score("f1", "左肺", "heart").value == 0.0


def test_slake_drops_parentheses_and_knows_x_ray() -> None:
    assert score("slake", "X-Ray", "xray").value == 1.0
    assert score("slake", "Lung (left)", "lung").value == 1.0
    assert score("slake", "Left", "left lung").value == 0.0


def test_the_explanation_says_what_was_expected_and_read() -> None:
    result = score("number", "50", "50%")
    assert result.answer == "50%"
    assert result.explanation == "expected 50, read 50%: only one of them is a percentage"


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(benchmarks()), st.text(max_size=200))
def test_every_text_as_answer_gets_a_score(name: str, answer: str) -> None:
    result = score(name, GOLDS.get(name, "3"), answer, choices=options_of(name))
    assert 0.0 <= result.value <= 1.0


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(benchmarks()),
    st.text(alphabet="0123456789.,-%\\{}frac sqrt()$^eE+/*AB<>答案：是", max_size=60),
)
def test_every_text_like_a_number_or_formula_gets_a_score(name: str, answer: str) -> None:
    assert 0.0 <= score(name, GOLDS.get(name, "3"), answer, choices=options_of(name)).value <= 1.0


PATHOLOGICAL = {
    "nested boxes": "\\boxed{" * 500 + "1" + "}" * 500,
    "nested fractions": "\\frac{" * 600,
    "roots": "\\sqrt" * 800,
    "tower": "9^9^9^9^9^9^9^9",
    "huge exponent": "1e999999999",
    "digits": "9" * 4000,
    "brackets": "(" * 4000,
    "quotes": "'" * 4001,
    "edges": ".;" * 2000,
    "declarations": "the answer is " * 280,
    "letters": "A " * 2000,
    "thoughts": "<think>" * 570,
    "megabyte": "x" * 1_000_000,
}


@pytest.mark.parametrize("name", sorted(PATHOLOGICAL))
def test_pathological_answers_are_wrong_within_a_moment_in_any_thread(name: str) -> None:
    values: list[float] = []

    def grade() -> None:
        for rule in benchmarks():
            values.append(
                score(rule, GOLDS.get(rule, "3"), PATHOLOGICAL[name], choices=options_of(rule)).value
            )

    started = time.process_time()
    thread = threading.Thread(target=grade)
    thread.start()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert values == [0.0] * len(benchmarks())
    assert time.process_time() - started < 2.0


def test_an_answer_over_the_limit_is_said_to_be_ungradable() -> None:
    assert score("exact", "3", "3" * 5000).explanation.startswith(
        "ungradable: the answer has 5000 characters"
    )


def test_twenty_thousand_text_answers_are_scored_in_a_second() -> None:
    answers = [f"Name{i}." for i in range(5000)]
    started = time.process_time()
    for answer in answers:
        score("exact", "Name7", answer)
    assert len(answers) / (time.process_time() - started) > 20_000


def test_the_gold_answers_of_real_rows_are_right(shared_dir: Path) -> None:
    scored = 0
    for name in ("chartqa", "geometry3k", "mathvision", "ocrbench", "vlmsareblind"):
        for line in (shared_dir / "data/benchmarks" / name / "samples.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            golds = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
            choices = row.get("choices")
            for gold in golds:
                result = score(name, golds, str(gold), choices=choices, group=row.get("task"))
                assert result.value == 1.0, (name, row["id"], result)
                scored += 1
    assert scored >= 80
