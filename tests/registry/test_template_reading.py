"""Reading templates: the short way for plain outputs says what the parser says; conditions are read in full."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from registry.templates import Reading, _read_any, _read_plain, read_condition, read_template

PIECES = (*"{}. |-(\n", "{{", "}}", "{%", "%}", "{#", "a", "b1", "text", "if", "none", "range")


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
@example("{{ a }}{{ a.text }}")
@example("{{{ a }}")
@example("{{ a }}}")
@example("{{ none }}{{ range }}")
@example("{{\n a .text }}")
@example("{# {{ a }} #}")
def test_the_short_way_and_the_parser_agree(text: str):
    short = _read_plain(text)
    assert short is None or short == _read_any(text)


def test_plain_outputs_are_read_without_the_parser():
    text = "Task: x\nOCR: {{ texts.json }}\n{{question}}"
    assert _read_plain(text) == Reading(frozenset({"texts", "question"}), frozenset({("texts", "json")}))


@pytest.mark.parametrize(
    ("condition", "fault"),
    [
        ("a | nosuch", "No filter named 'nosuch'"),
        ("a is nosuch", "No test named 'nosuch'"),
        ("a b", "chunk after expression"),
        ("a) + (b", "unexpected ')'"),
        ("", "unexpected 'end of template'"),
        ("{{ a }}", "a condition is a bare expression, without '{{ }}'"),
        ("not " * 3000 + "a", "nested too deep"),
    ],
)
def test_a_condition_that_cannot_run_is_a_fault(condition: str, fault: str):
    assert (read_condition(condition).fault or "").startswith(fault)


def test_a_condition_too_nested_for_python_is_a_fault():
    found = read_condition("a" + "()" * 200).fault
    assert found is not None and "too many nested parentheses" in found


def test_a_condition_says_what_it_reads():
    assert read_condition("ocr.text and not draft") == Reading(
        frozenset({"ocr", "draft"}), frozenset({("ocr", "text")})
    )
    assert read_template("{% for x in xs %}{{ x.a }}{% endfor %}").variables == frozenset({"xs"})
