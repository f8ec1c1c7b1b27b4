"""The numbers of an evaluation and their denominators."""

from __future__ import annotations

import math

import pytest

from eval.facts import facts_of, same_question
from eval.metrics import spread, summarise
from eval.statistics.bootstrap import interval, wilson_interval
from eval.statistics.groups import accuracy, by_group
from eval.statistics.paired import paired_difference
from eval.statistics.routing import entropy_bits, pair_counts
from eval.statistics.samples import mean_of, pass_at_k, pass_questions, questions


@pytest.mark.parametrize(("k", "expected"), [(1, 0.25), (2, 0.5), (4, 1.0)])
def test_pass_at_k_of_one_right_in_four_is_unbiased(k: int, expected: float) -> None:
    assert pass_at_k(4, 1, k) == pytest.approx(expected)


def test_pass_at_k_is_undefined_beyond_the_samples_drawn() -> None:
    assert pass_at_k(2, 2, 4) is None
    assert pass_at_k(2, 0, 4) is None


def test_pass_at_k_refuses_impossible_counts() -> None:
    with pytest.raises(ValueError, match="n=2, correct=3, k=1"):
        pass_at_k(2, 3, 1)


def test_mean_pass_at_k_leaves_out_questions_with_too_few_valid_samples(make_facts) -> None:
    facts = [
        make_facts("a", 1.0, sample=0),
        make_facts("a", 0.0, sample=1),
        make_facts("b", 1.0, sample=0),
        make_facts("b", None, sample=1),
    ]
    assert mean_of(pass_questions(facts, 1)) == pytest.approx(0.75)
    assert mean_of(pass_questions(facts, 2)) == pytest.approx(1.0)
    assert mean_of(pass_questions(facts, 3)) is None


def test_three_outages_in_ten_rows_leave_accuracy_over_seven_and_a_status_of_incomplete(make_facts) -> None:
    values = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, None, None, None]
    summary = summarise([make_facts(f"row-{i}", value) for i, value in enumerate(values)])
    assert summary.accuracy == pytest.approx(5 / 7)
    assert (summary.n, summary.trajectories, summary.valid, summary.errors) == (7, 10, 7, 3)
    assert summary.status == "incomplete"
    assert summary.failures == {"Chart-Reader: unavailable": 3}
    assert summary.accuracy_bounds == pytest.approx((5 / 10, 8 / 10))  # all errors wrong, all errors right


def test_an_invalid_trajectory_has_no_score_even_if_one_was_given(make_trajectory) -> None:
    facts = facts_of("after", "test", 1.0, make_trajectory(valid=False))
    assert facts.value is None
    assert facts.verdict == "error"


def test_nothing_measured_gives_none_not_zero() -> None:
    summary = summarise([])
    assert summary.accuracy is None
    assert summary.ci95 is None
    assert summary.malformed_rate is None
    assert summary.copied_share is None
    assert summary.latency_s.p95 is None


def test_malformed_rate_counts_trajectories_not_turns(make_facts) -> None:
    facts = [make_facts("a", malformed=3), make_facts("b"), make_facts("c"), make_facts("d")]
    assert summarise(facts).malformed_rate == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("Do they touch?", True),
        ("  Do  they\n touch? ", True),
        ("do they touch?", False),
        ("They touch?", False),
    ],
)
def test_a_sub_question_is_copied_only_if_it_is_the_question_up_to_whitespace(query: str, same: bool) -> None:
    assert same_question(query, "Do they touch?") is same


def test_copied_share_is_a_share_of_calls(make_facts) -> None:
    facts = [make_facts("a"), make_facts("b", query="something else"), make_facts("c"), make_facts("d")]
    assert summarise(facts).copied_share == pytest.approx(0.75)


def test_tokens_latency_calls_and_turns_are_means_per_valid_trajectory(make_facts) -> None:
    summary = summarise([make_facts("a", latency_s=1.0), make_facts("b", latency_s=3.0), make_facts("c", None)])
    assert summary.policy_prompt_tokens == 30
    assert summary.policy_completion_tokens == 9
    assert summary.expert_tokens == 102
    assert (summary.expert_prompt_tokens, summary.expert_completion_tokens) == (100, 2)
    assert summary.tokens.mean == 30 + 9 + 102  # read and written, policy and experts
    assert summary.written_tokens.p50 == 9 + 2
    assert (summary.expert_requests, summary.policy_s, summary.expert_s) == (1, 0.5, 0.01)
    assert (summary.calls, summary.turns) == (1, 2)
    assert (summary.latency_s.mean, summary.latency_s.p50) == (2.0, 2.0)


def test_spread_interpolates_between_order_statistics() -> None:
    found = spread([float(value) for value in range(1, 102)])
    assert (found.mean, found.p50, found.p95) == (51.0, 51.0, 96.0)


def test_money_is_a_mean_over_valid_trajectories_and_a_sum_over_all(make_facts, make_trajectory) -> None:
    facts = []
    for row, valid in (("a", True), ("b", True), ("c", False)):
        trajectory = make_trajectory(row, valid=valid)
        trajectory["turns"][0]["observation"]["usage"]["cost"] = 0.25
        facts.append(facts_of("after", "test", 1.0 if valid else None, trajectory))
    summary = summarise([*facts, make_facts("d")])
    assert summary.cost == pytest.approx(0.5 / 3)
    assert summary.cost_total == pytest.approx(0.75)


def test_malformed_turns_have_a_share_of_their_own(make_facts) -> None:
    facts = [make_facts("a", malformed=2), make_facts("b")]  # 4 turns and 2 turns
    assert summarise(facts).malformed_turn_share == pytest.approx(2 / 6)


def test_a_score_outside_nought_to_one_is_refused(make_trajectory) -> None:
    for value in (1.5, -0.1, float("nan")):
        with pytest.raises(ValueError, match="from 0 to 1"):
            facts_of("after", "test", value, make_trajectory())


def test_micro_counts_trajectories_and_macro_counts_groups(make_facts) -> None:
    # x: 2 of 4 right, y: 1 of 1. Micro 3/5; macro (1/2 + 1)/2. A group of errors alone is in neither.
    facts = [make_facts(f"x{i}", float(i < 2), group="x") for i in range(4)]
    facts += [make_facts("y", 1.0, group="y"), make_facts("z", None, group="z")]
    summary = summarise(facts)
    assert (summary.accuracy, summary.macro) == (0.6, 0.75)


def test_the_interval_is_the_same_for_the_same_seed_and_any_order_of_rows(make_facts) -> None:
    facts = [make_facts(f"row-{i}", float(i % 3 == 0)) for i in range(60)]
    first = summarise(facts, seed=3).ci95
    assert first == summarise(list(reversed(facts)), seed=3).ci95
    assert first is not None
    assert first[0] < 1 / 3 < first[1]
    assert first[1] - first[0] == pytest.approx(2 * 1.96 * math.sqrt(2 / 9 / 60), abs=0.04)


def test_the_interval_resamples_questions_not_samples(make_facts) -> None:
    """Ten samples that always agree tell no more than one: the interval must not shrink."""
    once = [make_facts(f"row-{i}", float(i % 2)) for i in range(40)]
    tenfold = [make_facts(f"row-{i}", float(i % 2), sample=s) for i in range(40) for s in range(10)]
    assert interval(questions(once), seed=0) == interval(questions(tenfold), seed=0)


def test_all_right_does_not_claim_certainty() -> None:
    low, high = interval([(1.0, 1)] * 20, seed=0) or (0.0, 0.0)
    assert (low, high) == pytest.approx((0.8389, 1.0), abs=1e-4)


def test_wilson_interval_of_a_half_is_symmetric() -> None:
    assert wilson_interval(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)


def test_the_paired_difference_uses_only_questions_that_both_answered(make_facts) -> None:
    before = [make_facts("a", 0.0), make_facts("b", 0.0), make_facts("c", None)]
    after = [make_facts("a", 1.0), make_facts("b", 0.0), make_facts("c", 1.0), make_facts("d", 1.0)]
    found = paired_difference(before, after, seed=0)
    assert found is not None
    assert found[0] == pytest.approx(0.5)
    assert paired_difference(before, [make_facts("z", 1.0)], seed=0) is None


def test_families_are_measured_apart(make_facts) -> None:
    facts = [
        make_facts("a", 1.0, group="x"),
        make_facts("b", 0.0, group="y"),
        make_facts("c", None, group="z"),
    ]
    assert by_group(facts, accuracy) == {"x": 1.0, "y": 0.0, "z": None}


def test_pairs_are_counted_by_family_most_frequent_first(make_facts) -> None:
    facts = [
        make_facts("a", group="x", pair=("A", "S")),
        make_facts("b", group="x", pair=("B", "S")),
        make_facts("c", group="x", pair=("B", "S")),
    ]
    assert list(pair_counts(facts)["x"].items()) == [("B@@S", 2), ("A@@S", 1)]


@pytest.mark.parametrize(
    ("counts", "bits"),
    [({"a": 7}, 0.0), ({"a": 5, "b": 5}, 1.0), ({str(i): 2 for i in range(8)}, 3.0), ({}, None)],
)
def test_entropy_is_in_bits(counts: dict[str, int], bits: float | None) -> None:
    assert entropy_bits(counts) == bits
