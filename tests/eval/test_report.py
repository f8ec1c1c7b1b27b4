"""The report: one file, no network, foreign text harmless."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from eval.config import load_eval_config
from eval.facts import facts_of
from eval.matrix import Cell, Matrix
from eval.report import heat
from eval.report.bundle import Bundle
from eval.report.cards import card_of
from eval.report.choice import choose
from eval.report.page import Material, render
from eval.results import build_results

EMBEDDED = Path(__file__).parents[2] / "configs" / "eval" / "embedded.yaml"
HOSTILE = "</pre></script><script>alert(1)</script><img src=x onerror=alert(2)> &amp; \u202egnp \ud83d"
PIXEL = "data:image/png;base64,iVBORw0KGgo="


class Page(HTMLParser):
    """Collects elements and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def material(make_trajectory, **changes: Any) -> Material:
    config = load_eval_config(EMBEDDED)
    records = {}
    for arm, right in (("after", True), ("before", False), ("keyword", True)):
        for row in range(4):
            for split in ("test", "test_unseen"):
                valid = not (arm == "after" and split == "test" and row == 3)
                details: dict[str, Any] = {"group": "bar_value" if row % 2 else "grid_size", "valid": valid}
                trajectory = make_trajectory(f"{split}-{row}", **details, **changes)
                facts = facts_of(arm, split, float(right), trajectory)
                score = {"value": float(right), "answer": "42", "explanation": changes.get("answer", "equal")}
                records[facts.key] = (
                    facts,
                    {"arm": arm, "split": split, "score": score, "trajectory": trajectory},
                )
    facts = [fact for fact, _ in records.values()]
    pair = ("Chart-Reader", "Chart_Problem_Solver")
    matrix = Matrix(
        (pair,),
        ("bar_value", "grid_size"),
        {(pair, "bar_value"): Cell(9, 10), (pair, "grid_size"): Cell(0, 10)},
    )
    results = build_results(
        config,
        facts,
        rows={"test": 4, "test_unseen": 4, "validation": 20},
        matrix=matrix,
        training={"grpo_steps": 3},
        seconds={"matrix": 1.0},
        versions={"python": "3.11"},
    )
    bundle = Bundle(1_000_000)
    for key in choose(facts, lead="after", arms=["after", "before", "keyword"]):
        assert bundle.add(card_of(records[key][1], records[key][0], "1: fine"))
    return Material("Title <b>", results, matrix, bundle, len(facts), [PIXEL], None, b"\x89PNG", (), 1_000_000)


def embedded_data(text: str) -> dict[str, Any]:
    stored = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert stored is not None
    return json.loads(stored[1])


def test_hostile_text_of_expert_policy_and_question_becomes_plain_text(make_trajectory) -> None:
    text = render(material(make_trajectory, observation=HOSTILE, answer=HOSTILE, question=HOSTILE, gold=HOSTILE))
    page = Page(text)
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert all("src" not in attributes or str(attributes["src"]).startswith("data:") for _, attributes in page.elements)
    assert any("alert(1)" in one for one in embedded_data(text)["strings"])
    assert "\u202e" not in text
    text.encode("utf-8")


def test_the_page_refers_to_nothing_outside_itself(make_trajectory) -> None:
    text = render(material(make_trajectory))
    assert not re.search(r"(?:https?:)?//[a-z]", text)
    page = Page(text)
    assert not any(tag in ("link", "iframe", "object", "base") for tag, _ in page.elements)
    assert all(str(attributes["href"]).startswith("#") for _, attributes in page.elements if "href" in attributes)
    assert not any("action" in attributes for _, attributes in page.elements)
    assert "url(" not in text
    assert "@import" not in text


def test_every_section_that_the_bar_on_top_names_is_there(make_trajectory) -> None:
    page = Page(render(material(make_trajectory)))
    ids = {attributes.get("id") for _, attributes in page.elements}
    links = {str(attributes["href"])[1:] for _, attributes in page.elements if "href" in attributes}
    assert links == {"main", "arms", "groups", "plots", "routing", "trajectories"}
    assert links <= ids


def test_the_page_forbids_network_and_any_script_but_its_own(make_trajectory) -> None:
    text = render(material(make_trajectory))
    policy = next(a["content"] for tag, a in Page(text).elements if tag == "meta" and a.get("http-equiv")) or ""
    assert "default-src 'none'" in policy
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in html.unescape(policy)


def test_a_picture_is_stored_once_however_many_cards_show_it(make_trajectory) -> None:
    text = render(material(make_trajectory))
    data = embedded_data(text)
    assert data["pictures"] == [PIXEL]
    assert text.count(PIXEL) == 1
    assert [card[17] for card in data["cards"]] == [[0]] * 24


def test_errors_are_told_at_the_top_and_every_filter_has_its_values(make_trajectory) -> None:
    text = render(material(make_trajectory))
    assert "Incomplete" in text
    page = Page(text)
    assert [a["name"] for tag, a in page.elements if tag == "select"] == [
        "arm", "outcome", "family", "pair", "stop", "split",
    ]  # fmt: skip
    values = [a["value"] for tag, a in page.elements if tag == "option" and a["value"]]
    assert values == [
        "after", "before", "keyword", "right", "wrong", "error", "bar_value", "grid_size",
        "Chart-Reader@@Chart_Problem_Solver", "answered", "infrastructure", "test", "test_unseen",
    ]  # fmt: skip


def test_the_headline_numbers_are_those_of_the_results(make_trajectory) -> None:
    given = material(make_trajectory)
    text = render(given)
    assert given.results["after"]["accuracy"] == 1.0
    assert given.results["before"]["accuracy"] == 0.0
    tiles = re.findall(r"<b>([^<]*)</b><small>", text)
    assert tiles[:3] == ["100.0 %", "0.0 %", "+100.0"]


def test_the_lenient_rule_is_shown_only_where_it_scores_differently(make_trajectory) -> None:
    given = material(make_trajectory)
    assert "scored<br>differently" not in render(given)
    after = {**given.results["after"], "lenient": {"accuracy": 0.875, "ci95": [0.5, 1.0], "differ": 3}}
    text = render(replace(given, results={**given.results, "after": after}))
    assert "scored<br>differently" in text
    assert "<td>0.875</td><td>3</td>" in text
    assert "after, lenient: 0.875 (95 %: 0.500 to 1.000)" in text


def test_rows_that_could_not_be_used_are_told_with_their_reasons(make_trajectory) -> None:
    given = material(make_trajectory)
    skipped = {"no picture <b>": 2, "no gold answer": 1}
    text = render(replace(given, results={**given.results, "skipped": skipped}))
    assert "<b>Rows left out:</b> 3 rows" in text
    assert '2: <span class="foreign">no picture &lt;b&gt;</span>' in text


def test_groupings_are_tables_of_their_own_with_their_macro_average(make_trajectory) -> None:
    given = material(make_trajectory)
    closed = {"accuracy": 0.25, "ci95": [0.0, 0.5], "n": 4}
    opened = {"accuracy": 0.75, "ci95": None, "n": 4}
    groupings = {"answer_type": {"groups": {"closed": closed, "open": opened}, "macro": 0.5}}
    after = {**given.results["after"], "groupings": groupings}
    text = render(replace(given, results={**given.results, "after": after}))
    table = text[text.index("accuracy by answer type") :]
    assert '<th scope="row">closed</th><td>4</td>' in table
    assert '0.250 <span class="range">0.00–0.50</span>' in table
    assert "mean of the groups (macro)</th><td></td><td>0.500</td><td>–</td>" in table


def test_without_training_matrix_and_policies_the_page_still_stands(tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text(
        "benchmark: embedded\nrun: x\nrows: {test: 2, validation: 2}\narms: {random: {kind: random_pair}}\n"
    )
    results = build_results(
        load_eval_config(path), [], rows={"test": 2}, matrix=None, training={}, seconds={}, versions={}
    )
    assert results["baselines"]["random"]["accuracy"] is None
    assert "0 of 0 are in this file" in render(Material("Empty", results))


@pytest.mark.parametrize(("value", "number"), [(0.0, 0), (0.5, 11), (1.0, 20), (7.0, 20), (-1.0, 0)])
def test_shares_become_steps_of_the_heat_map(value: float, number: int) -> None:
    assert heat.step(value) == number


def test_every_cell_of_the_heat_map_can_be_read_in_light_and_in_dark() -> None:
    found = [heat.pair_of(step, ends) for ends in (heat.LIGHT, heat.DARK) for step in range(heat.STEPS + 1)]
    assert min(heat.contrast(ground, text) for ground, text in found) >= 4.5
    assert heat.contrast((0, 0, 0), (255, 255, 255)) == 21.0
