"""The system prompt in both styles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from registry.errors import UserFault
from registry.prompt import system_prompt
from registry.registry import Registry

SERVED = Path(__file__).parent / "served.yaml"


def most_tokens(text: str) -> int:
    """An upper estimate for English: words in pieces of at most five letters, each digit and sign."""
    return len(re.findall(r"[^\W\d_]{1,5}|\d|[^\w\s]|_|\n", text))


@pytest.fixture(scope="module")
def served() -> Registry:
    return Registry.load(SERVED)


def test_the_full_prompt_of_five_experts_and_skills_stays_under_800_tokens(served):
    assert most_tokens(system_prompt(served, "full")) <= 800


def test_the_compact_prompt_is_a_few_lines(served):
    assert system_prompt(served, "compact").splitlines() == [
        "Delegate (at most 4): <search> Expert@@Skill: question </search>",
        "Finish: <answer> answer </answer>",
        "Experts: GLM-4.6V-Flash, Chart-R1, Qwen3-VL-8B-Instruct, Intern-S1-mini, MedGemma-1.5-4b-it",
        "Skills: Geometric Problem Solver, Chart Problem Solver, Counting Problem Solver, "
        "Perception Problem Solver, Science Problem Solver",
        "Example: <search> GLM-4.6V-Flash@@Geometric Problem Solver: What is shown? </search>",
    ]


@pytest.mark.parametrize("style", ["full", "compact"])
def test_both_styles_name_every_expert_and_skill_and_the_horizon(served, style):
    text = system_prompt(served, style, horizon=7)
    for part in (*served.experts, *served.skills):
        assert part.name in text
    assert "At most 7 delegations" in text or "(at most 7)" in text


def test_the_full_prompt_describes_them_and_balances_its_tags(served):
    text = system_prompt(served, "full", horizon=1)
    for part in (*served.experts, *served.skills):
        assert f"- {part.name}: {part.description}\n" in text
    assert "At most 1 delegation." in text
    for tag in ("think", "search", "information", "answer"):
        assert text.count(f"<{tag}>") == text.count(f"</{tag}>") > 0


def test_level_2_and_tools_are_not_the_policys_business(served):
    text = system_prompt(served, "full")
    assert "Pie Chart Solver" not in text and "detect" not in text


def test_braces_in_a_description_are_text(write):
    path = write("""\
        experts: {e: {description: "sets {a, b} {horizon}", backend: {type: python, target: t}}}
        skills: {s: {description: d, subskills: {a: {description: d, procedure: {steps: [{ask: q}]}}}}}
        """)
    assert "- e: sets {a, b} {horizon}\n" in system_prompt(Registry.load(path), "full")


def test_a_registry_without_skills_has_no_prompt(write):
    path = write("experts: {e: {description: d, backend: {type: python, target: t}}}")
    with pytest.raises(UserFault, match="the registry has no skills"):
        system_prompt(Registry.load(path), "full")


def test_unknown_styles_and_empty_horizons_are_refused(served):
    with pytest.raises(UserFault, match="unknown prompt style 'short'"):
        system_prompt(served, "short")  # type: ignore[arg-type]
    with pytest.raises(UserFault, match="a horizon of 0 allows no delegation"):
        system_prompt(served, "full", horizon=0)
