"""The policies behind the arms: who is asked, and that no rule looks where it may not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from eval.arms import Choices, PairByFamily, PairByRow, build_policy
from eval.config import EvalConfig, load_eval_config
from eval.matrix import Cell, Matrix
from eval.measure_pairs import measure, right_pairs
from eval.variants import variants
from experts.images import Picture
from experts.outcome import Delegation, Outcome
from orchestrator.action import Search
from orchestrator.budget import Budget
from orchestrator.episode import begin
from orchestrator.protocol import parse_turn
from orchestrator.task import Task
from registry.registry import Registry

FIRST, SECOND = ("Chart-Reader", "Chart_Problem_Solver"), ("Geometer", "Geometric_Problem_Solver")
MATRIX = Matrix((FIRST, SECOND), ("x", "y"), {(FIRST, "x"): Cell(9, 10), (SECOND, "y"): Cell(8, 10)})
RULES = """\
benchmark: embedded
run: runs/x
rows: {test: 4, validation: 4}
arms:
  random: {kind: random_pair}
  single: {kind: best_single_pair}
  keyword: {kind: keyword}
  family: {kind: family_pair}
  oracle: {kind: oracle}
"""


class Answers:
    """A pool double: replies by (expert, question); everything else is down. Counts its calls."""

    def __init__(self, replies: dict[tuple[str, str], str]) -> None:
        self.registry = Registry.load()
        self.replies = replies
        self.asked: list[tuple[str, str]] = []

    async def delegate(
        self, expert: str, skill: str, question: str, pictures: Sequence[Picture], *, deadline_s: float | None = None
    ) -> Delegation:
        self.asked.append((expert, question))
        reply = self.replies.get((expert, question))
        outcome = Outcome.UNAVAILABLE if reply is None else Outcome.OK
        return Delegation(outcome, reply or "", expert, skill)


def task(row_id: str, group: str, gold: str = "7", question: str = "How many?") -> Task:
    return Task(row_id, "exact", group, question, (), gold)


def asked(policy, of: Task) -> tuple[str, str]:
    """The pair that a policy asks in its first turn."""
    turn = asyncio.run(policy.act(begin(of.row_id, None, Budget(), task=of), seed=1))
    action = parse_turn(turn.text)
    assert isinstance(action, Search)
    assert action.query == of.question
    return action.expert, action.skill


@pytest.fixture
def rules(tmp_path: Path) -> EvalConfig:
    path = tmp_path / "eval.yaml"
    path.write_text(RULES)
    return load_eval_config(path)


def test_every_rule_asks_the_pair_that_it_stands_for(rules: EvalConfig) -> None:
    registry = Registry.load()
    choices = Choices(MATRIX, {"r1": SECOND})
    policies = {variant.arm: build_policy(rules, registry, variant, choices) for variant in variants(rules)}
    row = task("r1", "y")
    assert asked(policies["single"], row) == FIRST
    assert asked(policies["family"], row) == SECOND
    assert asked(policies["family"], task("r2", "never measured")) == FIRST
    assert asked(policies["oracle"], row) == SECOND
    names = {(expert.name, skill.name) for expert in registry.experts for skill in registry.skills}
    assert asked(policies["random"], row) in names


def test_keyword_routing_depends_on_the_words_alone(rules: EvalConfig) -> None:
    variant = next(variant for variant in variants(rules) if variant.arm == "keyword")
    policy = build_policy(rules, Registry.load(), variant, Choices())
    assert asked(policy, task("a", "x")) == asked(policy, task("b", "y", gold="8"))


def test_pairs_laid_down_for_rows_and_families_are_followed() -> None:
    assert asked(PairByRow("oracle", {"a": FIRST, "b": SECOND}), task("b", "x")) == SECOND
    assert asked(PairByFamily({"x": SECOND}, FIRST), task("a", "x")) == SECOND


def test_an_arm_that_needs_the_matrix_says_so(rules: EvalConfig) -> None:
    variant = next(variant for variant in variants(rules) if variant.arm == "single")
    with pytest.raises(ValueError, match="'single' of kind 'best_single_pair' needs the matrix"):
        build_policy(rules, Registry.load(), variant, Choices())


def test_the_oracle_tries_the_best_pair_of_the_family_first_and_stops_when_it_is_right() -> None:
    pool = Answers({("Chart-Reader", "How many?"): "7", ("Geometer", "How many?"): "7"})
    chosen = asyncio.run(right_pairs([task("a", "x"), task("b", "y")], pool, MATRIX, concurrency=1))
    assert chosen == {"a": FIRST, "b": SECOND}
    assert len(pool.asked) == 2


def test_the_oracle_goes_on_past_wrong_answers_and_outages() -> None:
    pool = Answers({("Geometer", "How many?"): "7"})
    assert asyncio.run(right_pairs([task("a", "x")], pool, MATRIX)) == {"a": SECOND}


def test_a_row_that_no_pair_answers_keeps_the_best_pair_of_its_family() -> None:
    pool = Answers({("Chart-Reader", "How many?"): "1", ("Geometer", "How many?"): "2"})
    assert asyncio.run(right_pairs([task("a", "y")], pool, MATRIX)) == {"a": SECOND}


def test_measuring_counts_right_wrong_and_failed_calls_apart() -> None:
    pool = Answers({("Chart-Reader", "one"): "7", ("Chart-Reader", "two"): "8", ("Geometer", "one"): "7"})
    tasks = [task("a", "x", question="one"), task("b", "x", question="two")]
    steps: list[int] = []
    found = asyncio.run(measure(tasks, pool, (FIRST, SECOND), on_done=lambda: steps.append(1)))
    assert (found.accuracy(FIRST, "x"), found.accuracy(SECOND, "x")) == (0.5, 1.0)
    assert (found.errors, len(steps)) == (1, 4)
