"""sc@k: samples vote, exactly, over all subsets."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.facts import facts_of
from eval.statistics.samples import mean_of
from eval.statistics.self_consistency import sc_at_k, sc_questions
from eval.statistics.votes import vote_of

TWO_OF_FOUR = [("a", 1.0), ("a", 1.0), ("b", 0.0), ("c", 0.0)]


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, 1 / 2),  # two of four samples are right
        (2, 1 / 2),  # 6 pairs: {a,a} 1; {a,b} and {a,c} twice each, a tie: 1/2 each; {b,c} 0. (1 + 4/2) / 6
        (3, 2 / 3),  # 4 triples: {a,a,b} and {a,a,c} 1 each; {a,b,c} twice, a tie of three: 1/3. (2 + 2/3) / 4
        (4, 1.0),  # a has two votes, the others one
    ],
)
def test_the_expected_majority_over_all_subsets(k: int, expected: float) -> None:
    assert sc_at_k(TWO_OF_FOUR, k) == pytest.approx(expected, abs=1e-15)


def test_more_votes_than_samples_are_undefined() -> None:
    assert sc_at_k(TWO_OF_FOUR, 5) is None
    with pytest.raises(ValueError, match="k >= 1"):
        sc_at_k(TWO_OF_FOUR, 0)


def test_a_wrong_majority_outvotes_a_right_minority() -> None:
    assert sc_at_k([("a", 1.0), ("b", 0.0), ("b", 0.0)], 3) == 0.0


def test_samples_in_which_nothing_could_be_read_do_not_vote() -> None:
    assert sc_at_k([("a", 1.0), (None, 0.0), (None, 0.0)], 3) == 1.0
    assert sc_at_k([("a", 1.0), (None, 0.0)], 1) == 0.5
    assert sc_at_k([(None, 0.0), (None, 0.0)], 2) == 0.0


@given(st.lists(st.sampled_from([("a", 1.0), ("b", 0.0), ("c", 0.0), (None, 0.0)]), min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_it_is_what_counting_every_subset_gives(votes: list[tuple[str | None, float]]) -> None:
    for k in range(1, len(votes) + 1):
        subsets = list(combinations(votes, k))
        assert sc_at_k(votes, k) == pytest.approx(sum(map(_majority, subsets)) / len(subsets), abs=1e-12)


def _majority(subset: tuple[tuple[str | None, float], ...]) -> float:
    answers = [answer for answer, _ in subset if answer is not None]
    most = max(map(answers.count, answers), default=0)
    leaders = [answer for answer in set(answers) if answers.count(answer) == most]
    return sum(dict(subset)[leader] for leader in leaders) / len(leaders) if leaders else 0.0


def test_the_mean_is_over_questions_with_at_least_k_valid_samples(make_trajectory) -> None:
    def sample(row: str, number: int, answer: str, value: float | None):
        trajectory = make_trajectory(row, sample=number, answer=answer, valid=value is not None)
        return facts_of("after", "test", value, trajectory, read=answer)

    facts = [
        *(sample("p", i, answer, value) for i, (answer, value) in enumerate([("7", 1.0), ("7.0", 1.0), ("8", 0.0)])),
        *(sample("q", i, answer, value) for i, (answer, value) in enumerate([("8", 0.0), ("8", 0.0), ("7", 1.0)])),
        sample("r", 0, "7", 1.0),
        sample("r", 1, "7", None),
    ]
    # p: "7" and "7.0" are one answer with two votes; q: wrong; r has one sample
    assert mean_of(sc_questions(facts, 3)) == 0.5
    assert mean_of(sc_questions(facts, 1)) == pytest.approx((2 / 3 + 1 / 3 + 1) / 3)
    assert mean_of(sc_questions(facts, 4)) is None


@pytest.mark.parametrize(
    ("read", "vote"),
    [
        ("B", "b"),
        ("  Two   cats. ", "two cats"),
        ("1,234.50", "1234.5"),
        ("1234.5", "1234.5"),
        ("0.0", "0"),
        ("-0", "0"),
        ("1,23", "1,23"),  # a pair, not a number
        ("12%", "12%"),
        ("５", "5"),  # full width
        ("1e5", "1e5"),
        ("9" * 60, "9" * 60),
        ("", None),
        (" . ", None),
        (None, None),
    ],
)
def test_answers_that_say_the_same_are_one_vote(read: str | None, vote: str | None) -> None:
    assert vote_of(read) == vote


def test_a_right_answer_that_the_rule_did_not_read_votes_as_it_stands(make_trajectory) -> None:
    assert facts_of("after", "test", 1.0, make_trajectory(answer="Forty two")).vote == "forty two"
    assert facts_of("after", "test", 0.0, make_trajectory(answer="Forty two")).vote is None
