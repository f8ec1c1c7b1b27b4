"""Reward ablations, what calls cost, and how many of them the form asks for: one made episode, literal rewards."""

from __future__ import annotations

from typing import Any

import pytest

from rewards import RewardRule, reward

CALL = {
    "text": "<search> Chart-Reader@@Chart_Problem_Solver: How high? </search>",
    "action": {
        "type": "search",
        "expert": "Chart-Reader",
        "skill": "Chart_Problem_Solver",
        "query": "How high?",
    },
    "observation": {"text": "42", "outcome": "ok"},
}


def episode(said: str, calls: int = 1, tags: int = 1, cost: float | None = None) -> dict[str, Any]:
    """An episode of `calls` calls that ends with `tags` answers."""
    end = {
        "text": f"<answer>{said}</answer>" * tags,
        "action": {"type": "answer", "text": said},
        "observation": None,
    }
    usage = {} if cost is None else {"usage": {"policy": {"cost": 9.0}, "experts": {"cost": cost}}}
    head = {"id": "r1#0", "benchmark": "exact", "group": "", "ground_truth": "42", "choices": None}
    return {**head, "turns": [*[CALL] * calls, end], "stop": "answered", "valid": True, "error": None, **usage}


def parts(rule: RewardRule, **made: Any) -> tuple[float | None, float, float | None]:
    result = reward(episode(**made), rule)
    return result.answer, result.format, result.total


@pytest.mark.parametrize(
    ("rule", "right", "wrong", "out_of_form"),
    [
        (RewardRule(), 1.0, 0.0, 0.0),
        (RewardRule(format=False), 1.0, 0.0, 1.0),
        (RewardRule(answer=False), 0.0, 0.0, -1.0),
    ],
    ids=["the paper's", "without r_fmt", "without r_ans"],
)
def test_an_ablation_takes_its_part_out_of_the_sum_and_still_measures_it(
    rule: RewardRule, right: float, wrong: float, out_of_form: float
) -> None:
    assert parts(rule, said="42") == (1.0, 0.0, right)
    assert parts(rule, said="7") == (0.0, 0.0, wrong)
    assert parts(rule, said="42", calls=0) == (1.0, -1.0, out_of_form)


@pytest.mark.parametrize(("calls", "total"), [(1, 1.0), (2, 0.9), (3, 0.8), (4, 0.75)])
def test_calls_beyond_the_free_ones_are_taken_off_a_right_answer_up_to_the_limit(calls: int, total: float) -> None:
    rule = RewardRule(call_weight=0.1, free_calls=1, max_penalty=0.25)
    result = reward(episode("42", calls=calls), rule)
    assert (result.total, result.penalty) == (pytest.approx(total), pytest.approx(1 - total))


def test_a_wrong_answer_gains_nothing_by_being_cheap() -> None:
    rule = RewardRule(call_weight=0.1, cost_weight=5.0)
    assert parts(rule, said="7", calls=1) == parts(rule, said="7", calls=4, cost=0.3) == (0.0, 0.0, 0.0)
    assert reward(episode("42", calls=4, cost=0.3), rule).total == 0.5  # a right one is always worth more


@pytest.mark.parametrize(
    ("cost", "total"), [(None, 1.0), (0.0, 1.0), (0.02, 0.8), (float("nan"), 1.0), (-3.0, 1.0), (float("inf"), 1.0)]
)
def test_the_experts_money_is_taken_off_and_a_record_without_it_costs_nothing(cost: float, total: float) -> None:
    assert reward(episode("42", cost=cost), RewardRule(cost_weight=10.0)).total == pytest.approx(total)


@pytest.mark.parametrize(("least", "calls", "form"), [(0, 0, 0.0), (1, 0, -1.0), (2, 1, -1.0), (2, 2, 0.0)])
def test_the_form_asks_for_as_many_calls_as_the_rule_says(least: int, calls: int, form: float) -> None:
    assert reward(episode("42", calls=calls), RewardRule(min_calls=least)).format == form


def test_missing_calls_are_counted_in_the_explanation() -> None:
    said = reward(episode("42", calls=1), RewardRule(min_calls=3)).explanation
    assert said.endswith("format -1 (1 of 3 well-formed calls of a known expert and skill with a real input)")


def test_what_was_taken_off_is_said() -> None:
    said = reward(episode("42", calls=3), RewardRule(call_weight=0.1)).explanation
    assert said.endswith("balanced tags); calls and cost take off 0.2")
