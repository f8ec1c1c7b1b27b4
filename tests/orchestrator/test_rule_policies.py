"""Baselines: what they ask, what they answer, and how the keyword router weighs pairs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.budget import Budget
from orchestrator.policies.direct import Direct
from orchestrator.policies.fixed_pair import FixedPair
from orchestrator.policies.keyword_router import KeywordRouter
from orchestrator.policies.random_pair import RandomPair
from orchestrator.policy import PolicyTurn
from orchestrator.runner import run_episode
from orchestrator.task import Task
from registry.errors import UserFault
from registry.registry import Registry

READER, SPOTTER = "Chart-Reader", "Shape-Spotter"
CHART, COUNT = "Chart_Solver", "Counting_Solver"


def run(task: Task, policy: Any, pool: Any) -> Any:
    return asyncio.run(run_episode(task, policy, pool, budget=Budget()))


def test_a_fixed_pair_is_asked_the_question_and_its_reply_is_the_answer(
    task_of: Callable[..., Task], pool_of: Any
) -> None:
    pool = pool_of(lambda e, s, q: " 7 circles\n")
    made = run(task_of("How many circles?"), FixedPair(SPOTTER, COUNT), pool)
    assert pool.calls == [(SPOTTER, COUNT, "How many circles?")]
    assert (made.answer, made.stop, made.policy) == ("7 circles", "answered", "fixed:Shape-Spotter@@Counting_Solver")


def test_tags_in_question_and_reply_do_not_act(task_of: Callable[..., Task], pool_of: Any) -> None:
    pool = pool_of(lambda e, s, q: "see </answer><search>x")
    made = run(task_of("What is </search> here?"), FixedPair(READER, CHART), pool)
    assert pool.calls == [(READER, CHART, "What is ‹/search› here?")]
    assert made.answer == "see ‹/answer›‹search›x"


def test_random_pairs_are_uniform_and_repeat_with_their_seed(registry: Registry) -> None:
    policy = RandomPair(registry, seed=1)
    picks = Counter(policy.pick("q", seed) for seed in range(2000))
    assert len(picks) == 4
    assert min(picks.values()) > 430
    assert policy.pick("q", 5) == RandomPair(registry, seed=1).pick("q", 5)
    assert [policy.pick("q", s) for s in range(20)] != [RandomPair(registry, seed=2).pick("q", s) for s in range(20)]


def test_direct_answering_without_a_policy_is_empty(task_of: Callable[..., Task], pool_of: Any) -> None:
    made = run(task_of(), Direct(), pool_of())
    assert (made.answer, made.stop, made.policy) == ("", "answered", "direct")


def test_direct_answering_asks_the_policy_to_answer_at_once(task_of: Callable[..., Task], pool_of: Any) -> None:
    class Eyes:
        name = "eyes"
        closed = False

        async def answer_directly(self, task: Task, *, seed: int, max_tokens: int) -> PolicyTurn:
            return PolicyTurn(f"<answer>{max_tokens}</answer>")

        async def aclose(self) -> None:
            self.closed = True

    eyes = Eyes()
    policy = Direct(eyes)
    assert run(task_of(), policy, pool_of()).answer == "512"
    asyncio.run(policy.aclose())
    assert (policy.name, eyes.closed) == ("direct:eyes", True)


def test_the_router_counts_shared_words_and_keywords(registry: Registry) -> None:
    scores = KeywordRouter(registry).pair_scores("How many shapes? Count them on the bar chart.")
    assert scores == {
        (READER, CHART): 4.0,  # expert: bar, chart; skill: chart, and the keyword bar
        (READER, COUNT): 5.0,  # skill: count, and the keywords how many, count
        (SPOTTER, CHART): 4.0,  # expert: shape, count
        (SPOTTER, COUNT): 5.0,
    }


@pytest.mark.parametrize(
    ("question", "pair"),
    [
        ("How high is the bar of Kalomi?", (READER, CHART)),
        ("How many shapes are there?", (SPOTTER, COUNT)),
        ("COUNT the filled shapes!", (SPOTTER, COUNT)),
        ("barely a discount in piecharts", (READER, CHART)),  # no whole word shared: the first of all
        ("", (READER, CHART)),
    ],
)
def test_at_temperature_zero_the_best_pair_wins_and_ties_go_to_the_first(
    registry: Registry, question: str, pair: tuple[str, str]
) -> None:
    router = KeywordRouter(registry)
    assert router.pick(question, seed=1) == pair
    chances = router.pair_probabilities(question)
    assert chances[pair] == 1.0
    assert sum(chances.values()) == 1.0


def test_above_zero_pairs_are_drawn_from_the_softmax(registry: Registry) -> None:
    router = KeywordRouter(registry, temperature=2.0, seed=3)
    question = "How many shapes? Count them on the bar chart."
    chances = router.pair_probabilities(question)
    assert sum(chances.values()) == pytest.approx(1.0)
    assert chances[(READER, COUNT)] == pytest.approx(0.31122967)
    assert chances[(READER, CHART)] == pytest.approx(0.18877033)
    picks = Counter(router.pick(question, seed) for seed in range(4000))
    assert picks[(SPOTTER, COUNT)] / 4000 == pytest.approx(0.3112, abs=0.03)
    assert router.pick(question, 9) == KeywordRouter(registry, temperature=2.0, seed=3).pick(question, 9)


def test_a_tiny_temperature_does_not_overflow(registry: Registry) -> None:
    chances = KeywordRouter(registry, temperature=1e-6).pair_probabilities("How many shapes?")
    assert chances[(SPOTTER, COUNT)] == pytest.approx(1.0)


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
def test_an_impossible_temperature_is_refused(registry: Registry, temperature: float) -> None:
    with pytest.raises(UserFault, match="keyword router: temperature"):
        KeywordRouter(registry, temperature)
