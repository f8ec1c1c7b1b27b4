"""What the numbers are worth: intervals, paired comparisons, signed ranks, power. Expected values by hand."""

from __future__ import annotations

import numpy as np
import pytest

from eval.statistics.bootstrap import interval
from eval.statistics.groups import groups, macro_average, weighted_average
from eval.statistics.macro import macro_interval
from eval.statistics.paired import compare, compare_means, holm, mcnemar
from eval.statistics.power import detectable_difference, independent_discordance, sample_size
from eval.statistics.routing import routing
from eval.statistics.wilcoxon import signed_rank


def test_the_interval_of_many_questions_is_that_of_the_binomial() -> None:
    # 70,000 of 100,000 right: standard error sqrt(0.7 * 0.3 / 100000) = 0.001449, 1.96 of them are 0.00284.
    low, high = interval([(1.0, 1)] * 70_000 + [(0.0, 1)] * 30_000, seed=1) or (0, 0)
    assert (low, high) == pytest.approx((0.69716, 0.70284), abs=2e-4)


def test_one_question_with_many_samples_weighs_more_than_one_with_few() -> None:
    # Of 3 questions, one has 8 wrong samples: the micro mean is 2/10, and resamples without it give 1.
    low, high = interval([(1.0, 1), (1.0, 1), (0.0, 8)], seed=0) or (0, 0)
    assert (low, high) == (0.0, 1.0)


def test_groups_tell_accuracy_questions_samples_and_errors(make_facts) -> None:
    facts = [
        make_facts("a", 1.0, group="x"),
        make_facts("a", 0.0, group="x", sample=1),
        make_facts("b", None, group="x"),
        make_facts("c", None, group="y"),
    ]
    found = groups(facts, seed=0)
    x, y = found["x"], found["y"]
    assert (x.accuracy, x.n, x.valid, x.errors) == (0.5, 1, 2, 1)
    assert (y.accuracy, y.ci95, y.n, y.valid, y.errors) == (None, None, 0, 0, 1)


def test_rows_can_be_grouped_another_way(make_facts) -> None:
    facts = [make_facts("a", 1.0, group="grid rows"), make_facts("b", 0.0, group="grid words"), make_facts("c", 1.0)]
    found = groups(facts, seed=0, name=lambda fact: fact.group.split()[0])
    assert {name: group.accuracy for name, group in found.items()} == {"grid": 0.5, "bar_value": 1.0}


def test_averages_leave_out_what_was_not_measured() -> None:
    assert macro_average([1.0, 0.0, None]) == 0.5
    assert macro_average([None]) is None
    assert weighted_average({"a": 1.0, "b": 0.0, "c": None}, {"a": 3, "b": 1, "c": 9}) == 0.75
    with pytest.raises(ValueError, match="'b' needs a weight"):
        weighted_average({"a": 1.0, "b": 0.0}, {"a": 1})


def test_a_macro_interval_without_any_spread_combines_the_groups_own(make_facts) -> None:
    # 20 of 20 right: Wilson's bound is 0.8389, 0.1611 below. Two such groups: sqrt(2) * 0.1611 / 2 = 0.1139 below.
    facts = [make_facts(f"{group}{i}", 1.0, group=group) for group in "xy" for i in range(20)]
    assert macro_interval(facts, seed=0) == pytest.approx((0.8861, 1.0), abs=1e-4)
    assert macro_interval([], seed=0) is None


def test_a_macro_interval_draws_within_groups(make_facts) -> None:
    # x: 50 of 100; y: 1 of 1, always. Standard error 0.05 / 2 around 0.75.
    facts = [make_facts(f"x{i}", float(i % 2), group="x") for i in range(100)] + [make_facts("y", 1.0, group="y")]
    assert macro_interval(facts, seed=0) == pytest.approx((0.70, 0.80), abs=0.006)


def test_routing_tells_what_the_family_explains(make_facts) -> None:
    # x: A twice, B twice (1 bit); y: B four times (0 bits). Together A 2, B 6 of 8: 0.5 + 0.75 * log2(4/3) = 0.8113.
    pairs = [("x", "A"), ("x", "A"), ("x", "B"), ("x", "B"), *[("y", "B")] * 4]
    found = routing(make_facts(str(i), group=group, pair=(expert, "S")) for i, (group, expert) in enumerate(pairs))
    assert found.counts == {"B@@S": 6, "A@@S": 2}
    assert (found.experts, found.skills, found.calls) == ({"B": 6, "A": 2}, {"S": 8}, 8)
    assert found.entropy_bits == pytest.approx(0.8113, abs=1e-4)
    assert found.family_entropy_bits == 0.5
    assert found.family_information_bits == pytest.approx(0.3113, abs=1e-4)
    assert routing([]).entropy_bits is None


def test_a_comparison_counts_wins_losses_and_ties_over_shared_questions() -> None:
    baseline = {"a": 0.0, "b": 0.0, "c": 1.0, "d": 1.0, "only": 1.0}
    found = compare_means(baseline, {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.0, "other": 0.0}, seed=0)
    assert found is not None
    assert (found.n, found.wins, found.losses, found.ties) == (4, 2, 1, 1)
    assert (found.accuracy, found.baseline, found.difference, found.discordant) == (0.75, 0.5, 0.25, 0.75)
    assert found.mcnemar_p == 1.0  # 2 * (1 + 3) / 2**3
    assert compare_means({"a": 1.0}, {"b": 1.0}, seed=0) is None


def test_the_bootstrap_p_is_the_share_of_resamples_as_far_from_nought() -> None:
    # Gains 1 and 0, mean 0.5. Of the four resamples two (0, 0 and 1, 1) lie 0.5 from their centre: p = 1/2.
    found = compare_means({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 0.0}, seed=0)
    assert found is not None
    assert found.p == pytest.approx(0.5, abs=0.02)
    assert found.ci95 == (0.0, 1.0)


def test_arms_that_agree_everywhere_do_not_claim_to_be_equal(make_facts) -> None:
    # Nothing in 20 questions: a share of up to 0.1611 could hide (Wilson).
    same = [make_facts(f"row-{i}", float(i % 2)) for i in range(20)]
    found = compare(same, same, seed=0)
    assert found is not None
    assert found.ci95 == pytest.approx((-0.1611, 0.1611), abs=1e-4)
    assert (found.difference, found.p, found.mcnemar_p, found.questions_needed) == (0.0, 1.0, 1.0, None)


def test_several_samples_have_no_mcnemar(make_facts) -> None:
    before = [make_facts("a", 0.0), make_facts("a", 1.0, sample=1), make_facts("b", 0.0)]
    found = compare(before, [make_facts("a", 1.0), make_facts("b", 1.0)], seed=0)
    assert found is not None
    assert (found.difference, found.mcnemar_p, found.detectable) == (0.75, None, None)


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(0, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (3, 1, 0.625), (9, 2, 0.0654296875)]
)
def test_mcnemar_is_a_fair_coin(wins: int, losses: int, p: float) -> None:
    assert mcnemar(wins, losses) == mcnemar(losses, wins) == p


def test_holm_multiplies_by_the_comparisons_that_are_left_and_never_falls() -> None:
    # Sorted: 0.01 * 3, 0.03 * 2, 0.04 * 1, which may not be below the one before.
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == {"a": 0.03, "b": 0.06, "c": 0.06}
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}


def test_ten_of_ten_benchmarks_give_the_papers_p() -> None:
    found = signed_rank([0.1, 1.3, 2.2, 0.4, 5.0, 0.6, 0.7, 3.8, 0.9, 1.0])
    assert found.p_greater == 2**-10 == found.smallest_p_greater
    assert found.p_two_sided == 2**-9


def test_the_textbook_example_of_wilcoxon() -> None:
    # Heights of cross- and self-fertilised maize, differences in eighths of an inch: rank sum down 24, p 0.0413.
    heights = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]
    found = signed_rank(heights)
    assert (found.n, found.rank_sum_up, found.rank_sum_down) == (15, 96, 24)
    assert (found.p_two_sided, found.p_greater) == (0.041259765625, 0.0206298828125)


def test_equal_sizes_share_their_rank_and_zeros_are_left_out() -> None:
    # Ranks 2, 2, 2: sums 0, 2, 4, 6 with chances 1, 3, 3, 1 of 8. Up is 4: p = 4/8.
    found = signed_rank([0.3 - 0.2, 0.2 - 0.1, -0.1, 0.0])
    assert (found.n, found.zeros, found.rank_sum_up, found.rank_sum_down) == (3, 1, 4.0, 2.0)
    assert (found.p_greater, found.p_two_sided) == (0.5, 1.0)


def test_no_difference_at_all_has_no_p() -> None:
    found = signed_rank([0.0, 0.0])
    assert (found.n, found.zeros, found.p_greater, found.p_two_sided) == (0, 2, None, None)
    with pytest.raises(ValueError, match="finite"):
        signed_rank([float("nan")])


def test_the_sample_size_by_the_formula() -> None:
    # (1.95996 * sqrt(0.3) + 0.84162 * sqrt(0.3 - 0.01))**2 / 0.01 = 1.52674**2 / 0.01 = 233.1
    assert sample_size(0.1, 0.3) == sample_size(-0.1, 0.3) == 234
    assert detectable_difference(234, 0.3) == pytest.approx(0.0998, abs=2e-4)
    assert detectable_difference(5, 0.3) is None
    assert detectable_difference(100, 0.0) is None
    assert independent_discordance(0.7, 0.8) == pytest.approx(0.7 * 0.2 + 0.3 * 0.8)


@pytest.mark.parametrize(("difference", "discordant"), [(0.0, 0.3), (0.4, 0.3), (0.1, 1.2)])
def test_impossible_plans_are_refused(difference: float, discordant: float) -> None:
    with pytest.raises(ValueError, match="0 < difference <= discordant <= 1"):
        sample_size(difference, discordant)


@pytest.mark.parametrize(("difference", "discordant"), [(0.1, 0.3), (0.05, 0.2), (0.2, 0.5)])
def test_simulated_runs_show_the_difference_as_often_as_planned(difference: float, discordant: float) -> None:
    n = sample_size(difference, discordant)
    up, down = (discordant + difference) / 2, (discordant - difference) / 2
    drawn = np.random.default_rng(5).multinomial(n, [up, down, 1 - discordant], size=20_000)
    wins, losses = drawn[:, 0], drawn[:, 1]
    shown = np.abs(wins - losses) > 1.959964 * np.sqrt(wins + losses)
    assert float(shown.mean()) == pytest.approx(0.8, abs=0.02)
