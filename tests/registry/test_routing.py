"""Routing from a Level-1 skill to its subskill, with the reason."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.routing import Route, classify_prompt, map_label, route, route_keyword
from registry.schema import Procedure, Skill, Step, Subskill

PROCEDURE = Procedure(steps=(Step(ask="{{ question }}"),))


def subskill(name: str, *keywords: str, aliases: tuple[str, ...] = ()) -> Subskill:
    return Subskill(
        name=name, aliases=aliases, description=f"{name} charts.", keywords=keywords, procedure=PROCEDURE
    )


BAR = subskill("Bar Chart", "bar", "bars", "column", "柱状图", aliases=("histogram",))
PIE = subskill("Pie Chart", "pie", "pie chart", "slice", "饼图", "원그래프")
LINE = subskill("Line Chart", "line", "x-axis", "on", "1.10", "กราฟเส้น")
SUBSKILLS = (BAR, PIE, LINE)


def skill(routing: str = "auto", default: str | None = "Line Chart") -> Skill:
    fields = {"name": "Charts", "description": "Charts.", "routing": routing, "default": default}
    return Skill.model_validate({**fields, "subskills": SUBSKILLS})


def found(question: str) -> tuple[str, str] | None:
    hit = route_keyword(skill(), question)
    return None if hit is None else (hit.subskill.name, hit.reason)


@pytest.mark.parametrize(
    "question", ["barely a slicer", "a piece of it", "barb", "rebar", "11.10", "1.105", "", "?", "zebärbar"]
)
def test_a_keyword_inside_another_word_does_not_count(question: str):
    assert found(question) is None


@pytest.mark.parametrize(
    ("question", "name", "reason"),
    [
        ("How high is the bar?", "Bar Chart", "keyword:bar"),
        ("HOW HIGH IS THE BAR", "Bar Chart", "keyword:bar"),
        ("ＢＡＲ　２０２０", "Bar Chart", "keyword:bar"),
        ("(bar)", "Bar Chart", "keyword:bar"),
        ("the bar's height", "Bar Chart", "keyword:bar"),
        ("bar_2020", "Bar Chart", "keyword:bar"),
        ("the X axis", "Line Chart", "keyword:x-axis"),
        ("which pie-chart", "Pie Chart", "keyword:pie chart"),
        ("which pie\n chart", "Pie Chart", "keyword:pie chart"),
        ("is it on", "Line Chart", "keyword:on"),
        ("version 1.10 please", "Line Chart", "keyword:1.10"),
        ("这个饼图的标题是什么", "Pie Chart", "keyword:饼图"),
        ("柱状图里最高的是哪个", "Bar Chart", "keyword:柱状图"),
        ("图中bar的高度", "Bar Chart", "keyword:bar"),
        ("원그래프에서 가장 큰 것은", "Pie Chart", "keyword:원그래프"),
        ("ดูกราฟเส้นนี้", "Line Chart", "keyword:กราฟเส้น"),
    ],
)
def test_whole_words_of_several_scripts_are_found(question: str, name: str, reason: str):
    assert found(question) == (name, reason)


def test_most_keywords_win():
    assert found("a bar, no: the pie chart and its slice") == ("Pie Chart", "keyword:pie chart")
    assert found("the bar in the column beside the x-axis") == ("Bar Chart", "keyword:column")


def test_a_repeated_word_counts_once():
    assert found("bar bar bar pie slice") == ("Pie Chart", "keyword:slice")


def test_at_equal_hits_the_longest_keyword_wins_then_the_order_in_the_file():
    assert found("pie or column") == ("Bar Chart", "keyword:column")
    assert found("slice or bar") == ("Pie Chart", "keyword:slice")
    assert found("pie or bar") == ("Bar Chart", "keyword:bar")
    assert found("bar or pie") == ("Bar Chart", "keyword:bar")


@given(st.text())
def test_any_question_is_routed_or_not_without_an_error(question: str):
    hit = route_keyword(skill(), question)
    assert hit is None or hit.subskill in SUBSKILLS


def test_a_keyword_found_is_really_in_the_question():
    assert found("a bar") == ("Bar Chart", "keyword:bar")
    assert found("a ba r") is None


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        ("Pie Chart", "Pie Chart"),
        ("  pie_chart\n", "Pie Chart"),
        ('"Pie Chart".', "Pie Chart"),
        ("**Pie-Chart**", "Pie Chart"),
        ("histogram", "Bar Chart"),
        ("ＰＩＥ ＣＨＡＲＴ", "Pie Chart"),
    ],
)
def test_a_label_is_mapped_exactly_after_normalisation(reply: str, name: str):
    chosen = map_label(skill(), reply)
    assert chosen is not None and chosen.name == name


@pytest.mark.parametrize(
    "reply",
    [
        "It is a Pie Chart",
        "Pie",
        "Pie Charts",
        "Pie Chart or Bar Chart",
        "Pie Chart\nbecause",
        "",
        "...",
        "7",
    ],
)
def test_sentences_and_near_labels_are_not_mapped(reply: str):
    assert map_label(skill(), reply) is None


def run(routing: str, question: str, reply: str | None, default: str | None = "Line Chart"):
    asked: list[str] = []

    async def ask(text: str) -> str | None:
        asked.append(text)
        return reply

    chosen = asyncio.run(route(skill(routing, default), question, ask))
    return chosen.subskill.name, chosen.reason, len(asked)


def test_auto_takes_keywords_first_then_asks_then_the_default():
    assert run("auto", "the bar", "Pie Chart") == ("Bar Chart", "keyword:bar", 0)
    assert run("auto", "which is it?", "Pie Chart") == ("Pie Chart", "classifier", 1)
    assert run("auto", "which is it?", "I think pie") == ("Line Chart", "default:unmapped reply", 1)
    assert run("auto", "which is it?", None) == ("Line Chart", "default:no reply", 1)
    assert run("auto", "which is it?", " ") == ("Line Chart", "default:no reply", 1)


def test_keyword_routing_never_asks():
    assert run("keyword", "the bar", "Pie Chart") == ("Bar Chart", "keyword:bar", 0)
    assert run("keyword", "which is it?", "Pie Chart") == ("Line Chart", "default", 0)


def test_classify_asks_even_where_a_keyword_would_hit():
    assert run("classify", "the bar", "Pie Chart") == ("Pie Chart", "classifier", 1)
    assert run("classify", "the bar", "Scatter Chart") == ("Line Chart", "default:unmapped reply", 1)


def test_without_a_default_the_first_subskill_is_taken_in_doubt():
    assert run("keyword", "which is it?", None, default=None) == ("Bar Chart", "default", 0)


@pytest.mark.parametrize("routing", ["auto", "keyword", "classify"])
def test_without_an_expert_keywords_then_the_default_decide(routing: str):
    assert asyncio.run(route(skill(routing), "the bar", None)) == Route(BAR, "keyword:bar")
    assert asyncio.run(route(skill(routing), "which is it?", None)) == Route(LINE, "default")


def test_a_single_subskill_is_taken_without_asking():
    only = Skill(name="s", description="d", routing="classify", subskills=(PIE,))
    assert asyncio.run(route(only, "the bar", None)) == Route(PIE, "only")


def test_the_expert_is_shown_the_question_on_one_line_and_all_labels():
    text = classify_prompt(skill(), "which\nis  it?")
    assert text.splitlines() == [
        "Task: classify",
        "Question: which is it?",
        "Which method fits this question?",
        "- Bar Chart: Bar Chart charts.",
        "- Pie Chart: Pie Chart charts.",
        "- Line Chart: Line Chart charts.",
        "Reply with one of these labels and nothing else: Bar Chart | Pie Chart | Line Chart",
    ]
