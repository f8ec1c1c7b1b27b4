"""Why an arm was wrong: classes by what the run itself shows."""

from __future__ import annotations

from eval.matrix import Cell, Matrix
from eval.report.bundle import Bundle
from eval.report.failures import analyse, evidence
from eval.report.failures_view import failures_view, ready
from eval.report.wordings import splits, wavering, wording

A_CHART, A_COUNT, B_CHART, B_COUNT = ("A", "Chart"), ("A", "Count"), ("B", "Chart"), ("B", "Count")


def test_each_wrong_trajectory_belongs_to_the_first_class_that_the_run_supports(make_facts) -> None:
    facts = [make_facts(f"r{i}", 0.0, pair=A_CHART) for i in range(5)] + [make_facts("fine", 1.0, pair=A_CHART)]
    facts += [
        make_facts("r0", 1.0, arm="oracle", pair=A_CHART),  # the same pair
        make_facts("r1", 1.0, arm="oracle", pair=B_CHART),  # another expert
        make_facts("r1", 1.0, arm="random", pair=B_COUNT),  # ... although another skill did, too
        make_facts("r2", 1.0, arm="oracle", pair=B_COUNT),  # another skill only
        make_facts("r3", 0.0, arm="oracle", pair=B_COUNT),  # nobody
        make_facts("r4", None, arm="oracle", pair=B_COUNT),  # an error is no evidence
    ]
    found = analyse(facts, "after", evidence(facts))
    assert found.counts == {"no call": 0, "right pair": 1, "other expert": 1, "other skill": 1, "none": 2}
    assert found.valid == 6
    assert [(case.key[1], case.other) for case in found.boundaries[("Chart", "Count")]] == [("r2", "B@@Count")]


def test_the_pair_shown_is_the_one_with_the_highest_share_of_right_tries(make_facts) -> None:
    facts = [make_facts("r0", 0.0, pair=A_CHART)]
    facts += [make_facts("r0", float(i == 0), arm="x", sample=i, pair=A_COUNT) for i in range(4)]
    facts += [make_facts("r0", 1.0, arm="y", pair=B_COUNT)]
    (case,) = analyse(facts, "after", evidence(facts)).cases
    assert case.other == "B@@Count"
    assert case.tries is not None
    assert (case.tries.right, case.tries.of) == (1, 1)


def test_wrong_answers_without_a_call_are_no_routing_fault(make_facts, make_trajectory) -> None:
    from eval.facts import facts_of

    trajectory = make_trajectory("r0")
    trajectory["turns"] = trajectory["turns"][1:]
    facts = [facts_of("after", "test", 0.0, trajectory), make_facts("r0", 1.0, arm="oracle", pair=A_CHART)]
    assert analyse(facts, "after", evidence(facts)).counts["no call"] == 1


def test_a_wording_masks_what_is_particular_to_a_question() -> None:
    assert wording("How tall is Kalomi in 2019?") == "How tall is ‹name› in #?"
    assert wording('What does "Total (1,234.5)"  say?\nAnswer in words.') == "What does ‹…› say? Answer in words."
    assert wording("Count the circles.") == "Count the circles."


def test_wordings_whose_calls_are_divided_between_skills_are_listed_with_what_was_right(make_facts) -> None:
    facts = [make_facts(f"r{i}", 1.0, pair=A_CHART) for i in range(6)]
    facts += [make_facts(f"r{i}", float(i == 6), pair=B_COUNT) for i in range(6, 8)]
    facts += [make_facts(f"s{i}", 1.0, pair=A_CHART) for i in range(8)]
    questions = {f"r{i}": f"How tall is bar {i}?" for i in range(8)} | {f"s{i}": "How many?" for i in range(8)}
    (split,) = splits(facts, "after", questions)
    assert (split.wording, split.n) == ("How tall is bar #?", 8)
    assert [(one.skill, one.n, one.right) for one in split.skills] == [("Chart", 6, 6), ("Count", 2, 1)]


def test_too_few_calls_or_too_small_a_share_are_no_split(make_facts) -> None:
    few = [make_facts("r0", 1.0, pair=A_CHART), make_facts("r1", 1.0, pair=A_COUNT)]
    assert splits(few, "after", {"r0": "How many?", "r1": "How many?"}) == []
    rare = [make_facts(f"r{i}", 1.0, pair=A_CHART if i else A_COUNT) for i in range(20)]
    assert splits(rare, "after", {f"r{i}": "How many?" for i in range(20)}) == []


def test_questions_whose_samples_name_different_skills_are_counted(make_facts) -> None:
    facts = [make_facts("r0", 1.0, sample=i, pair=A_CHART if i else A_COUNT) for i in range(3)]
    facts += [make_facts("r1", 1.0, sample=i, pair=A_CHART) for i in range(3)] + [make_facts("r2", 1.0)]
    assert wavering(facts, "after") == (1, 2)


def test_the_page_shows_a_boundary_case_with_both_pairs_and_what_they_do_on_validation(
    make_facts, make_trajectory
) -> None:
    from eval.report.cards import card_of

    facts = [make_facts("r0", 0.0, pair=A_CHART), make_facts("r0", 1.0, arm="oracle", pair=B_COUNT)]
    facts += [make_facts("u0", 0.0, pair=A_CHART, split="test_unseen")]
    by_key = {fact.key: fact for fact in facts}

    def read(key):
        trajectory = make_trajectory("r0", answer="7" if key[0] == "after" else "42")
        return card_of({"arm": key[0], "score": None, "trajectory": trajectory}, by_key[key], "")

    made = ready(facts, ["after", "oracle"])
    assert made is not None
    matrix = Matrix(
        (A_CHART, B_COUNT), ("bar_value",), {(A_CHART, "bar_value"): Cell(1, 10), (B_COUNT, "bar_value"): Cell(9, 10)}
    )
    view = failures_view(made, matrix, {"r0": "How tall?"}, read, Bundle(0))
    assert (view["wrong"], view["valid"]) == (1, 1)
    assert view["boundaries"] == [{"called": "Chart", "right": "Count", "n": 1, "families": [("bar_value", 1)]}]
    (case,) = view["cases"]
    assert (case["called"], case["answer"], case["called_before"]) == ("A@@Chart", "7", 0.1)
    assert (case["other"], case["other_answer"], case["other_before"]) == ("B@@Count", "42", 0.9)
    assert (case["right"], case["of"], case["other_arm"], case["gold"]) == (1, 1, "oracle", "42")
