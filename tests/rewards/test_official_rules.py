"""The public harnesses' rules to the letter: what they take, what they miss, and where they are fooled."""

from __future__ import annotations

import pytest

from rewards import score

COLOURS = ["red", "blue", "green", "black"]


@pytest.mark.parametrize(
    ("rule", "answer", "read"),
    [
        ("vstar", "B", "B"),
        ("vstar", "blue", "B"),  # begins with a letter from A to D, so that letter is read
        ("vstar", "The answer is C", "C"),
        ("vstar", "I see (D) here", "D"),
        ("vstar", "the glove is red", "D"),  # the only one of A to D in it
        ("vstar", "it is grey", None),
        ("hrbench", "B.", "B"),
        ("hrbench", "The car is blue", "B"),
        ("hrbench", "A or B", None),
        ("hrbench", "Cannot determine the answer", None),
        ("erqa", " b ", "B"),
        ("erqa", "B.", None),
        ("erqa", "(B)", None),
        ("microvqa", "The answer is **(2)**", "B"),
        ("microvqa", "(2)", "B"),
        ("microvqa", "B", "B"),
        ("microvqa", "blue", None),
        ("microvqa", "The answer is 22", "B"),  # one digit is read
        ("msearthmcq", "B. blue", "B"),
        ("msearthmcq", '```json\n{"answer": "B", "Explanation": "it is",}\n```', "B"),
        ("msearthmcq", '{"answer": "blue"}', "B"),
        ("msearthmcq", "b", "b"),
        ("msearthmcq", "it is blue", None),
        ("geometry3k", "A is wrong, so B", "B"),
        ("geometry3k", "the blue one", "B"),
        ("geometry3k", "B) It is a common thing", "B"),
        ("geometry3k", "a blue one", "A"),  # an article is a letter to this harness
        ("geometry3k", "none", None),
    ],
)
def test_the_letter_that_a_harness_reads(rule: str, answer: str, read: str | None) -> None:
    result = score(f"{rule}_official", "B", answer, choices=COLOURS)
    assert (result.answer, result.value) == (read, 1.0 if read == "B" else 0.0)


@pytest.mark.parametrize(
    ("gold", "answer", "value"),
    [
        ("Yes", "yeah.", 1),
        ("No", "没有", 1),
        ("X-Ray", "x ray", 1),
        ("Lung (left)", "lung", 1),
        ("肺", "肺。", 1),
        ("Left lung", "the left lung", 0),
        ("2", "two", 0),
    ],
)
def test_slake_compares_words_after_punctuation_is_gone(gold: str, answer: str, value: int) -> None:
    assert score("slake_official", gold, answer).value == value


def test_ocrbench_keeps_case_and_drops_spaces_for_formulas_alone() -> None:
    formula = "Handwritten Mathematical Expression Recognition"
    assert score("ocrbench_official", "x ^ 2", "x^2 + 1", group=formula).value == 1.0
    assert score("ocrbench_official", "X ^ 2", "x^2", group="HME100k").value == 0.0
    assert score("ocrbench_official", "Hello World", "it says hello\nworld", group="Doc-oriented VQA").value == 1.0
    assert score("ocrbench_official", "１２", "12").value == 0.0
    assert score("ocrbench", "１２", "12").value == 1.0


@pytest.mark.parametrize(
    ("answer", "read"),
    [("3", "3"), ("There are three dogs and 4 cats", "3"), ("21", None), ("3.0", "3"), ("none", None), ("3个", None)],
)
def test_tallyqa_reads_the_first_number_up_to_twenty(answer: str, read: str | None) -> None:
    assert score("tallyqa_official", "3", answer).answer == read


@pytest.mark.parametrize(
    ("task", "gold", "answer", "value"),
    [
        ("touching circles", "Yes", "yes", 1),
        ("touching circles", "Yes", "Yes.", 0),
        ("nested squares", "3", "{3}", 1),
        ("nested squares", "3", "I count 4, no 3", 0),
        ("circled letter", "n", "N", 1),
        ("circled letter", "n", "the letter is n", 0),
        ("counting grid", "5,6", "rows={5} columns={6}", 1),
        ("counting grid - word grids", "5,6", "(5, 6)", 1),
        ("counting grid", "5,6", "5,6", 0),
    ],
)
def test_vlmsareblind_reads_each_task_in_its_own_form(task: str, gold: str, answer: str, value: int) -> None:
    assert score("vlmsareblind_official", gold, answer, group=task).value == value


@pytest.mark.parametrize(
    ("gold", "choices", "answer", "value"),
    [
        ("A", ["$\\sqrt{6}$", "3"], "A", 1),
        ("A", ["$\\sqrt{6}$", "3"], "So the answer is (A).", 1),
        ("A", ["\\sqrt{6}", "3"], "\\boxed{\\sqrt{6}}", 1),
        ("A", ["$\\sqrt{6}$", "3"], "\\boxed{\\sqrt{6}}", 0),  # the option's $ is kept, the answer's is not
        ("A", ["$\\sqrt{6}$", "3"], "\\boxed{2.449}", 0),  # the harness cannot compute a root
        ("A", ["$2.25$", "3"], "\\boxed{\\frac{9}{4}}", 1),
        ("1000", None, "1,000", 1),
        ("A", ["$\\sqrt{6}$", "3"], "\\boxed{3}", 0),
        ("13", None, "x = 13", 1),
        ("0.5", None, "The final answer is 1/2.", 1),
        ("13", None, "thirteen", 0),
        ("(1,2)", None, "(1.0, 2)", 1),
        ("13", None, "{13}", 1),  # braces around a value are nothing to the LaTeX parser
        ("1000", None, "{1,000}", 1),
        ("5:3", None, "{5:3}", 1),
        ("2\\pi", None, "{2\\pi}", 0),  # no value to the harness, and another text
    ],
)
def test_mathvision_digs_the_answer_out_and_compares_values(
    gold: str, choices: list[str] | None, answer: str, value: int
) -> None:
    assert score("mathvision_official", gold, answer, choices=choices).value == value


def test_an_official_choice_rule_on_an_open_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="open question"):
        score("hrbench_official", "left lung", "B")
