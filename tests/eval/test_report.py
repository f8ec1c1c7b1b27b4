"""The report: one file, no network, foreign text harmless."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from eval.config import load_eval_config
from eval.facts import facts_of
from eval.matrix import Cell, Matrix
from eval.report.cards import card_of, choose
from eval.report.page import Material, render, shade
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
    keys = choose(facts, lead="after", arms=["after", "before", "keyword"], rows_per_family=4)
    cards = [card_of(records[key][1], records[key][0], "1: fine") for key in keys]
    return Material("Title <b>", results, matrix, cards, len(facts), {"ab" * 32: PIXEL}, b"\x89PNG")


def test_hostile_text_of_expert_policy_and_question_becomes_plain_text(make_trajectory) -> None:
    text = render(material(make_trajectory, observation=HOSTILE, answer=HOSTILE, question=HOSTILE, gold=HOSTILE))
    page = Page(text)
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert all("src" not in attributes or str(attributes["src"]).startswith("data:") for _, attributes in page.elements)
    assert "alert(1)" in " ".join(page.texts)
    assert "\u202e" not in text
    text.encode("utf-8")


def test_the_page_refers_to_nothing_outside_itself(make_trajectory) -> None:
    text = render(material(make_trajectory))
    assert not re.search(r"(?:https?:)?//[a-z]", text.replace("// The trajectory", ""))
    page = Page(text)
    assert not any(tag in ("link", "iframe", "object", "base", "form") for tag, _ in page.elements)
    assert not any("href" in attributes for _, attributes in page.elements)
    assert "url(" not in text
    assert "@import" not in text


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
    stored = re.search(r'id="pictures">(.*?)</script>', text, re.DOTALL)
    assert stored is not None
    assert json.loads(stored[1]) == {"ab" * 32: PIXEL}
    assert text.count(PIXEL) == 1
    assert text.count(f'data-picture="{"ab" * 32}"') > 8


def test_errors_are_told_at_the_top_and_can_be_filtered(make_trajectory) -> None:
    text = render(material(make_trajectory))
    assert "Incomplete" in text
    cards = [attributes for tag, attributes in Page(text).elements if tag == "article"]
    assert sorted({card["data-verdict"] or "" for card in cards}) == ["error", "right", "wrong"]
    assert {card["data-family"] for card in cards} == {"bar_value", "grid_size"}
    assert {card["data-pair"] for card in cards} == {"Chart-Reader@@Chart_Problem_Solver"}


def test_the_headline_numbers_are_those_of_the_results(make_trajectory) -> None:
    given = material(make_trajectory)
    text = render(given)
    assert given.results["after"]["accuracy"] == 1.0
    assert given.results["before"]["accuracy"] == 0.0
    tiles = re.findall(r"<b>([^<]*)</b><small>", text)
    assert tiles[:3] == ["100.0 %", "0.0 %", "+100.0"]


def test_without_training_matrix_and_policies_the_page_still_stands(make_trajectory, tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text(
        "benchmark: embedded\nrun: x\nrows: {test: 2, validation: 2}\narms: {random: {kind: random_pair}}\n"
    )
    results = build_results(
        load_eval_config(path), [], rows={"test": 2}, matrix=None, training={}, seconds={}, versions={}
    )
    assert results["baselines"]["random"]["accuracy"] is None
    assert "Trajectories" in render(Material("Empty", results))


def test_wrong_rows_come_first_for_half_of_those_shown_and_are_the_same_for_every_arm(make_facts) -> None:
    facts = [make_facts(f"r{i}", float(i >= 6), arm="after") for i in range(12)]
    facts += [make_facts(f"r{i}", 1.0, arm="before") for i in range(12)]
    keys = choose(facts, lead="after", arms=["after", "before"], rows_per_family=4)
    assert [key[1] for key in keys if key[0] == "after"] == ["r0", "r1", "r10", "r11"]
    assert [key[1] for key in keys if key[0] == "before"] == ["r0", "r1", "r10", "r11"]


@pytest.mark.parametrize(("value", "colour"), [(0.0, "#f3f7fb"), (1.0, "#155ea0"), (7.0, "#155ea0")])
def test_shades_run_from_near_white_to_blue(value: float, colour: str) -> None:
    assert shade(value) == colour
