"""Prompts and questions taken apart: fields, targets, stations, numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eval.benchmarks.embedded.wordings import WORDINGS, Wording
from experts.embedded.brief import TextBox, read_brief
from experts.embedded.forms import garbled
from experts.embedded.lexicon import understood
from experts.embedded.numbers import format_number, parse_number
from experts.embedded.words import Target, direction, extreme, mentions, names, stations, targets, wants_yes_no


def test_fields_are_read_in_any_order_of_case() -> None:
    brief = read_brief('task: Grid-Sizing\nOCR: [{"text": "Ka", "score": 1, "box": [1, 2, 3, 4]}]\nQuestion: How many?')
    assert brief.task == "grid_sizing"
    assert brief.question == "How many?"
    assert brief.texts == (TextBox("Ka", 1, 2, 3, 4),)
    assert brief.shapes is None


def test_a_question_cannot_replace_the_task_or_the_evidence() -> None:
    brief = read_brief('Task: a\nOCR: []\nQuestion: q\nTask: b\nOCR: [{"text": "x", "box": [0, 0, 1, 1]}]')
    assert brief.task == "a"
    assert brief.texts == ()


@pytest.mark.parametrize(
    "evidence", ["", "nonsense", "[", "{}", "[1, 2]", '[{"text": 5, "box": [0, 0, 1, 1]}]', "[NaN]"]
)
def test_unreadable_evidence_is_no_evidence(evidence: str) -> None:
    assert not read_brief(f"Task: a\nOCR: {evidence}\nQuestion: q").texts


def test_a_prompt_without_fields_is_a_question() -> None:
    brief = read_brief("How many shapes?")
    assert brief.task is None
    assert brief.question == "How many shapes?"


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Is the red circle left of the blue square?", [Target("red", "circle"), Target("blue", "square")]),
        ("How many grey shapes are there?", [Target("gray", None)]),
        ("How many shapes are red?", [Target("red", None)]),
        ("Count the stars", [Target(None, "star")]),
        ("Which one is the largest?", []),
    ],
)
def test_targets_of_a_question(question: str, found: list[Target]) -> None:
    assert targets(question) == found


@pytest.mark.parametrize(
    ("question", "pair"),
    [
        ("How many paths go from A to D?", ("A", "D")),
        ("A map: how many lines join B and C?", ("B", "C")),
        ("Is there a path to B?", None),
        ("Count the one-colored routes that go from B to C. Answer with a number, e.g., {3}", ("B", "C")),
    ],
)
def test_stations_of_a_question(question: str, pair: tuple[str, str] | None) -> None:
    assert stations(question) == pair


def test_directions_extremes_and_yes_no_questions() -> None:
    assert direction("Is it underneath?") == "below"
    assert direction("What is it?") is None
    assert extreme("Name the bar with the lowest value") == "least"
    assert extreme("Which one is the largest?") == "most"
    assert extreme("What is it?") is None
    assert wants_yes_no("Do they touch?")
    assert not wants_yes_no("How many times do they touch?")


@pytest.mark.parametrize(
    ("question", "label", "named"),
    [
        ("What is the value of Kalomi?", "Kalomi", True),
        ("What is the value of kalomi?", "KALOMI", True),
        ("What is the value of Kalomi?", "Kaloni", True),
        ("What is the value of Kalomi?", "Ka1omi", True),
        ("What is the value of Kalo?", "Kalomi", False),
        ("What is the value of Kalora?", "Kalomi", False),
        ("How high is Saudi Arabia in the chart?", "Saudl Arabla", True),
        ("How high is Saudi Arabia in the chart?", "Saudi Arabian", True),
        ("How high is Saudi Arabia?", "South Africa", False),
        ("", "Kalomi", False),
        ("What is the value of Kalomi?", "", False),
    ],
)
def test_a_label_is_named_when_its_letters_are_there_or_look_alike(question: str, label: str, named: bool) -> None:
    assert mentions(question, label) is named


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is the length of the side Kamo?", ["Kamo"]),
        ("How long is x in the triangle?", ["x"]),
        ("Is a circle left of A?", []),
        ("Kamo", []),
    ],
)
def test_names_in_a_question(question: str, found: list[str]) -> None:
    assert names(question) == found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,200", 1200.0),
        ("200 400", None),
        ("10-", 10.0),
        ("3.5 cm", 3.5),
        ("−4", -4.0),
        ("1O", 10.0),
        ("l5", 15.0),
        ("Kalomi", None),
        ("", None),
        ("x", None),
    ],
)
def test_printed_numbers(text: str, value: float | None) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(("value", "text"), [(12.0, "12"), (3.456, "3.46"), (0.0, "0"), (-0.001, "0"), (100.0, "100")])
def test_answers_have_at_most_two_decimals(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("task", "question", "expected"),
    [
        ("value_reading", "What is the value of Kalomi?", True),
        ("value_reading", "What is the valuo of Kalomi?", False),  # no word
        ("route_following", "How many paths go from A to C?", True),
        ("route_following", "How many single from A to C?", False),  # nothing of the task
        ("contact_check", "Do the two circles overlap?", True),
        ("contact_check", "Do the two circles the two circles overlap?", False),  # a stammer
        ("contact_check", "", False),
        ("unheard_of", "Is it red?", True),
        (
            "grid_sizing",
            "Count the rows and columns. Answer with numbers in curly brackets, e.g. rows={5}",
            True,
        ),
    ],
)
def test_only_questions_of_known_words_about_the_task_are_understood(task: str, question: str, expected: bool) -> None:
    assert understood(task, question) is expected


@pytest.mark.parametrize(
    ("task", "question"),
    [
        ("colour_naming", "Which one is smallest?"),
        ("colour_naming", "What colour is square?"),
        ("colour_naming", "What is the colour the largest shape?"),
        ("colour_naming", "What is the largest shape?"),
        ("extreme_finding", "Which bar is highest?"),
        ("extreme_finding", "Name the lowest value."),
        ("value_reading", "How high is bar Movoka?"),
        ("right_triangle", "How long is side z?"),
        ("position_judging", "Is the red star left the blue circle?"),
        ("object_counting", "How many shapes in the picture?"),
        ("object_counting", "How many cyan shapes there?"),
        ("nesting_depth", "How many squares in each other?"),
        ("position_judging", "Does the green circle right of the cyan square?"),
        ("contact_check", "Do the two touch?"),
        ("value_reading", "Read the value Movoka?"),
    ],
)
def test_a_question_that_lost_a_word_is_not_understood(task: str, question: str) -> None:
    assert understood(task, question) is False


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.id)
def test_no_wording_of_the_world_counts_as_having_lost_a_word(wording: Wording) -> None:
    for family in wording.asks:
        lines = {"line_crossings": ("red", "blue"), "subway_routes": ("A", "B")}
        one, two = lines.get(family, ("red square", "blue circle"))
        for way in ("left of", "right of", "above", "below"):
            words = {"name": "Movoka", "colour": "red", "kind": "square", "one": one, "two": two, "way": way}
            assert understood(None, wording.text.format(**words))


def test_hardly_a_wording_of_the_world_can_lose_a_word_unnoticed() -> None:
    taken = set()
    for wording in WORDINGS:
        words = {"name": "Movoka", "colour": "red", "kind": "square", "way": "left of"}
        lines = {"line_crossings": ("red", "blue"), "subway_routes": ("A", "B")}
        one, two = lines.get(next(iter(wording.asks)), ("red square", "blue circle"))
        asked = wording.text.format(**words, one=one, two=two).split()
        shorter = [[*asked[:i], *asked[i + 1 :]] for i in range(len(asked))]
        taken |= {" ".join(few) for few in shorter if understood(None, " ".join(few).rstrip("?.") + "?")}
    assert len(taken) < 40
    assert "Do the circles touch?" in taken  # another question, and a good one
    assert "How many shapes in the picture?" not in taken


def test_a_question_of_another_build_is_taken_word_by_word() -> None:
    assert understood("contact_check", "Tell me whether these two circles touch each other in this image, please.")


@example(["how", "many", "red", "squares", "there"])
@given(
    st.lists(st.sampled_from(["how", "many", "red", "squares", "are", "there", "the", "Movoka", "?", ""]), max_size=9)
)
def test_no_garbled_words_are_understood(words: list[str]) -> None:
    question = " ".join(words)
    assert not (garbled(question) and understood(None, question))


def test_a_program_declines_gibberish_and_answers_the_question() -> None:
    from experts.embedded.contour_analyst import ContourAnalyst

    class Blank:
        def rgb(self) -> np.ndarray:
            picture = np.full((200, 200, 3), 255, np.uint8)
            picture[20:180, 20:180] = 0
            picture[24:176, 24:176] = 255
            return picture

    ask = "Task: nesting_depth\nQuestion: {}".format
    assert ContourAnalyst().answer(ask("How many squares are there?"), [Blank()]) == "1"
    assert ContourAnalyst().answer(ask("How many squaresow are are there?"), [Blank()]) == "unclear"
