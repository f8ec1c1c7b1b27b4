"""The report in a headless browser: 5,000 trajectories, filters, keyboard, light and dark, no request."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Chromium, find_chromium

from eval.facts import facts_of
from eval.report.bundle import Bundle
from eval.report.cards import card_of
from eval.report.page import Material, write_report
from eval.report.runs import read_run, render_runs

HOSTILE = "</script><img src=x onerror=document.title='owned'><b>bold</b> \u202egnp"
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
ROWS, ARMS = 1250, ("after", "before", "keyword", "oracle")
COUNT = "document.getElementById('count').textContent"


def bundle_of(make_trajectory) -> Bundle:
    bundle = Bundle(8_000_000)
    for row in range(ROWS):
        for place, arm in enumerate(ARMS):
            pair = ("Chart-Reader", "Chart_Problem_Solver") if (row + place) % 5 else ("Geometer", "Geometry_Skill")
            details: dict[str, Any] = {"group": f"family_{row % 12}", "pair": pair, "valid": row != 7}
            question = HOSTILE if row == 3 else f"What is the value of bar {row} in the chart that is shown?"
            made = make_trajectory(f"row-{row:04d}", question=question, observation=f"it is {row}", **details)
            facts = facts_of(arm, "test", float((row + place) % 3 == 0), made)
            score = None if row == 7 else {"value": facts.value, "answer": "42", "explanation": "compared"}
            assert bundle.add(card_of({"arm": arm, "score": score, "trajectory": made}, facts, "1: fine"))
    return bundle


def entry(accuracy: float) -> dict[str, Any]:
    return {
        "accuracy": accuracy, "ci95": [accuracy - 0.02, accuracy + 0.02], "n": ROWS, "errors": 4,
        "malformed_rate": 0.01,
        "copied_share": 0.5, "calls": 1.0, "policy_completion_tokens": 18.0, "pairs": {}, "routing": None,
        "latency_s": {"mean": 2.0 + accuracy, "p50": 2.0, "p95": 4.0}, "pass_at_k": {"1": accuracy, "8": 0.9},
        "groups": {f"family_{i}": {"accuracy": accuracy, "ci95": None, "n": 104} for i in range(12)}, "macro": accuracy,
    }  # fmt: skip


def results() -> dict[str, Any]:
    return {
        "benchmark": "synthetic", "seed": 0, "rows": {"test": ROWS}, "errors": 4, "expected": 5000,
        "trajectories": 5000, "after": entry(0.6), "before": entry(0.3), "shared_wordings": {}, "families": {},
        "baselines": {"keyword": entry(0.5), "oracle": entry(0.95)}, "versions": {"python": "3.11"},
    }  # fmt: skip


@pytest.fixture(scope="module")
def page(make_trajectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundle = bundle_of(make_trajectory)
    made = Material("Five thousand", results(), None, bundle, 5000, [PIXEL], None, None, (), 16_000_000)
    return write_report(made, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Chromium]:
    with Chromium(find_chromium()) as one:
        yield one


@pytest.fixture
def shown(browser: Chromium, page: Path) -> Chromium:
    browser.open(page)
    return browser


def choose(browser: Chromium, name: str, value: str) -> str:
    field = f"document.querySelector('select[name={name}]')"
    return browser.run(f"{field}.value = {value!r}, {field}.dispatchEvent(new Event('change')), {COUNT}")


def search(browser: Chromium, words: str, expected: str) -> None:
    browser.run(f"words.value = {words!r}, words.dispatchEvent(new Event('input')), 0")
    browser.wait(f"{COUNT}.startsWith({expected!r})")


def test_five_thousand_trajectories_are_a_small_file_of_which_one_page_is_built(shown: Chromium, page: Path) -> None:
    assert page.stat().st_size < 2_000_000
    assert shown.run(COUNT) == "1250 of 5000 trajectories, 1 to 20 shown"
    assert shown.run("document.querySelectorAll('.card').length") == 20
    assert shown.run("document.querySelectorAll('*').length") < 3_000
    assert shown.errors == []


def test_nothing_is_requested_and_no_foreign_text_becomes_an_element(shown: Chromium) -> None:
    search(shown, "owned", "1 of 5000")
    assert shown.run("document.title") == "Five thousand"
    assert shown.run("document.querySelector('.card h3').textContent.includes('<b>bold</b>')")
    assert shown.run("document.querySelectorAll('.card h3 *, .card img:not([src^=\"data:\"])').length") == 0
    asked = [url for url in shown.requests if not url.startswith("data:")]
    assert [url.rpartition("/")[2] for url in asked] == ["report.html"]


def test_filters_and_words_narrow_down_together(shown: Chromium) -> None:
    assert choose(shown, "arm", "").startswith("5000 of 5000")
    assert choose(shown, "outcome", "error").startswith("4 of 5000")
    assert choose(shown, "outcome", "wrong").startswith("3330 of 5000")
    assert choose(shown, "pair", "Geometer@@Geometry_Skill").startswith("666 of 5000")
    assert choose(shown, "family", "family_3").startswith("42 of 5000")
    search(shown, "39 value row-0039", "1 of 5000")
    search(shown, "nowhere", "0 of 5000 trajectories; nothing fits")
    shown.run("document.getElementById('clear').click()")
    assert shown.run(COUNT).startswith("5000 of 5000")
    assert choose(shown, "stop", "infrastructure").startswith("4 of 5000")


def test_filtering_five_thousand_by_words_takes_little_time(shown: Chromium) -> None:
    choose(shown, "arm", "")
    started = time.process_time()
    spent = shown.run(
        "(() => { const start = performance.now(); words.value = 'is 77';"
        " document.querySelector('select[name=arm]').dispatchEvent(new Event('change'));"
        " return performance.now() - start; })()"
    )
    assert shown.run(COUNT).startswith("84 of 5000")
    assert spent < 5_000, time.process_time() - started  # tens of milliseconds on a machine that is not busy


def test_pages_turn_by_button_and_by_key_and_the_slash_leads_to_the_words(shown: Chromium) -> None:
    shown.run("document.getElementById('next').click()")
    assert shown.run(COUNT).endswith("21 to 40 shown")
    shown.press("ArrowRight")
    assert shown.run(COUNT).endswith("41 to 60 shown")
    shown.press("ArrowLeft")
    assert shown.run("document.getElementById('page').textContent") == "page 2 of 63"
    shown.press("/", "/")
    assert shown.run("document.activeElement.id") == "words"
    assert shown.run("words.value") == ""


def test_a_card_leads_to_all_trajectories_of_its_question(shown: Chromium) -> None:
    shown.run("document.querySelector('.card button[data-row]').click()")
    assert shown.run(COUNT) == "4 of 5000 trajectories of row row-0000, 1 to 4 shown"
    assert shown.run("[...document.querySelectorAll('.card .tag:nth-child(2)')].map(x => x.textContent)") == list(ARMS)


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(shown: Chromium) -> None:
    nameless = "[...document.querySelectorAll('select, input')].filter(x => !x.labels.length).length"
    assert shown.run(nameless) == 0
    assert shown.run("[...document.images].filter(x => !x.alt).length") == 0
    assert shown.run("[...document.querySelectorAll('svg')].every(x => x.getAttribute('aria-label'))")
    assert shown.run(
        "[...document.querySelectorAll('.sheet')].filter(x => x.tagName === 'DIV').every(x => x.tabIndex === 0)"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground_in_both_themes(shown: Chromium, theme: str) -> None:
    shown.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    poor = shown.run(
        """(() => {
          const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
          const light = (colour) => { const [r, g, b] = parts(colour).slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
            if ((parts(c)[3] ?? 1) > 0) return c; } return 'rgb(255,255,255)'; };
          return [...document.querySelectorAll('main *')].filter((e) => !e.closest('svg') && !e.disabled
              && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && e.offsetParent)
            .map((e) => { const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => x - y);
              return [(b + 0.05) / (a + 0.05), e.className, e.textContent.slice(0, 30)]; })
            .filter((one) => one[0] < 4.5);
        })()"""
    )
    assert poor == []


def test_the_page_is_no_wider_than_a_telephone(shown: Chromium) -> None:
    shown.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
    try:
        assert shown.run("document.documentElement.scrollWidth") <= 390
    finally:
        shown.call("Emulation.clearDeviceMetricsOverride")


def test_the_filter_row_wraps_without_a_lone_button_or_a_cut_hint(shown: Chromium) -> None:
    places = """(() => { const box = (e) => e.getBoundingClientRect(), style = getComputedStyle(words);
      const pen = document.createElement('canvas').getContext('2d'); pen.font = style.font;
      const room = words.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      return [box(words).bottom - box(clear).bottom, room >= pen.measureText(words.placeholder).width]; })()"""
    try:
        for width in (1024, 1280, 1600):
            shown.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
            assert shown.run(places) == [0, True], width
    finally:
        shown.call("Emulation.clearDeviceMetricsOverride")


def test_the_page_over_several_runs_opens_without_a_complaint(browser: Chromium, tmp_path: Path) -> None:
    import json

    (tmp_path / "results.json").write_text(json.dumps(results()))
    path = tmp_path / "all.html"
    path.write_text(render_runs([read_run(tmp_path)], "All"), encoding="utf-8")
    browser.open(path)
    assert browser.errors == []
    assert browser.run("document.querySelectorAll('svg').length") == 3
