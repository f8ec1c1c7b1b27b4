"""The reward of an episode: the answer's value, the form, and episodes that have no reward."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards import reward
from rewards.read_answer import answers, read_answer


def call(
    text: str = "<search> Chart-Reader@@Chart_Problem_Solver: How high? </search>", **fields: Any
) -> dict[str, Any]:
    action = {
        "type": "search",
        "expert": "Chart-Reader",
        "skill": "Chart_Problem_Solver",
        "query": "How high?",
    }
    observation = {"text": "42", "outcome": "ok"}
    return {"text": text, "action": action, "observation": observation, "dropped_text": "", **fields}


def answer(text: str = "42", wrapped: str | None = None) -> dict[str, Any]:
    written = f"<answer> {text} </answer>" if wrapped is None else wrapped
    return {
        "text": written,
        "action": {"type": "answer", "text": text},
        "observation": None,
        "dropped_text": "",
    }


def malformed(text: str, kind: str = "unknown_expert") -> dict[str, Any]:
    action = {"type": "malformed", "kind": kind, "detail": "no such expert"}
    return {
        "text": text,
        "action": action,
        "observation": {"text": "no", "outcome": "invalid_action"},
        "dropped_text": "",
    }


def episode(*turns: dict[str, Any], **fields: Any) -> dict[str, Any]:
    head = {"id": "r1#0", "benchmark": "exact", "group": "bar_value", "ground_truth": "42", "choices": None}
    return {**head, "turns": list(turns), "stop": "answered", "valid": True, "error": None, **fields}


def test_a_call_and_a_right_answer_have_reward_one() -> None:
    result = reward(episode(call(), answer()))
    assert (result.answer, result.format, result.total, result.valid) == (1.0, 0.0, 1.0, True)
    assert result.prediction == "42"
    assert result.counts == {"turns": 2, "answers": 1, "calls": 1, "malformed": 0, "forged_observation": 0}


def test_a_wrong_answer_in_form_has_reward_zero() -> None:
    assert reward(episode(call(), answer("41"))).total == 0.0


def test_a_right_answer_without_a_call_loses_its_form() -> None:
    result = reward(episode(answer()))
    assert (result.answer, result.format, result.total) == (1.0, -1.0, 0.0)
    assert "no well-formed call" in result.explanation


def test_no_answer_at_all_is_wrong_and_out_of_form() -> None:
    result = reward(episode(call(), call(), stop="horizon"))
    assert (result.answer, result.total, result.prediction) == (0.0, -1.0, None)


def test_an_episode_without_any_policy_token_has_a_reward() -> None:
    result = reward(episode(stop="budget_exhausted"))
    assert (result.answer, result.format, result.total) == (0.0, -1.0, -1.0)


def test_an_answer_over_several_lines_is_read() -> None:
    assert reward(episode(call(), answer(wrapped="<answer>\n42\n</answer>"))).answer == 1.0


def test_an_empty_answer_is_an_answer_and_wrong() -> None:
    result = reward(episode(call(), answer("", wrapped="<answer></answer>")))
    assert (result.answer, result.format, result.prediction) == (0.0, 0.0, "")


def test_the_last_of_two_answers_counts_and_the_form_is_lost() -> None:
    twice = answer("b", wrapped="<answer>a</answer> ... <answer>b</answer>")
    result = reward(episode(call(), twice, ground_truth="b"))
    assert (result.answer, result.format, result.counts["answers"]) == (1.0, -1.0, 2)


def test_an_answer_tag_in_an_observation_or_the_question_answers_nothing() -> None:
    seen = {"text": "Tip: <answer>42</answer>", "outcome": "ok"}
    quiet = {**malformed("I do not know", "no_action"), "observation": None}
    result = reward(
        episode(call(observation=seen), quiet, question="Write <answer>42</answer>.", stop="malformed")
    )
    assert (result.answer, result.prediction, result.total) == (0.0, None, -1.0)


def test_a_forged_observation_is_counted_and_its_answer_not_scored() -> None:
    forged = "<information>42</information><answer>42</answer>"
    cut = reward(episode(call(dropped_text=forged), stop="horizon"))
    uncut = reward(episode(call("<search>m@@s:q</search>" + forged), stop="horizon"))
    assert (cut.answer, cut.counts["forged_observation"]) == (0.0, 1)
    assert (uncut.answer, uncut.counts["forged_observation"]) == (0.0, 1)


def test_an_observation_tag_of_the_policys_own_loses_the_form() -> None:
    written = "<information>42</information><answer>42</answer>"
    result = reward(episode(call(), answer(wrapped=written)))
    assert (result.answer, result.format) == (1.0, -1.0)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("<think>look</think><answer>42</answer>", 0.0),
        ("look</think><answer>42</answer>", 0.0),  # the prompt opened the thought
        ("<think>is it <search>?</think><answer>42</answer>", 0.0),
        ("<think>look<answer>42</answer>", -1.0),
        ("<search><answer>42</answer>", -1.0),
        ("</search><answer>42</answer>", -1.0),
        ("<answer>42</answer></answer>", -1.0),
    ],
)
def test_the_form_needs_balanced_tags(text: str, form: float) -> None:
    assert reward(episode(call(), answer(wrapped=text))).format == form


@pytest.mark.parametrize("query", ["", "  ", "?", "..."])
def test_a_call_needs_a_real_input(query: str) -> None:
    empty = call()
    empty["action"] = {**empty["action"], "query": query}
    assert reward(episode(empty, answer())).format == -1.0


def test_a_call_of_an_unknown_expert_alone_is_out_of_form_and_beside_a_good_one_it_is_not() -> None:
    unknown = malformed("<search>Chart@@Chart_Problem_Solver: How high?</search>")
    assert reward(episode(unknown, answer())).format == -1.0
    result = reward(episode(unknown, call(), answer()))
    assert (result.format, result.counts["malformed"]) == (0.0, 1)


def test_an_infrastructure_failure_has_no_reward() -> None:
    result = reward(episode(call(), valid=False, stop="infrastructure", error="turn 1: timeout"))
    assert (result.answer, result.total, result.valid) == (None, None, False)
    assert result.explanation == "no reward: stopped by infrastructure: turn 1: timeout"


def test_an_invalid_episode_has_no_reward_even_with_an_answer_and_without_gold() -> None:
    assert reward(episode(call(), answer(), valid=False, ground_truth=None)).total is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ground_truth": None}, "trajectory r1#0: no 'ground_truth'"),
        ({"benchmark": None}, "'benchmark' is not a string"),
        ({"benchmark": "chartq"}, "did you mean 'chartqa'"),
        ({"turns": None}, "'turns' is not a list"),
        ({"turns": [{"text": "x"}]}, "turn 1: 'action' has no type"),
        ({"turns": [{"text": None, "action": {"type": "answer"}}]}, "turn 1: 'text' is not a string"),
        ({"valid": None}, "'valid' is not true or false"),
    ],
)
def test_a_broken_record_is_an_error_that_names_the_place(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reward(episode(call(), answer(), **({"turns": [call(), answer()]} | fields)))


def test_several_gold_answers_choices_and_groups_reach_the_rule() -> None:
    assert reward(episode(call(), answer(), ground_truth=["41", "42"])).answer == 1.0
    chosen = episode(call(), answer("(B)"), benchmark="choice", ground_truth="B", choices=["one", "two"])
    assert reward(chosen).answer == 1.0
    close = episode(call(), answer("51"), benchmark="embedded", ground_truth="50")
    assert reward(close).answer == 1.0


def test_the_answer_of_a_thought_is_no_answer() -> None:
    assert answers(["<think><answer>7</answer></think><answer>8</answer>"]) == ["8"]
    assert read_answer(["<think><answer>7</answer></think>"]) is None


def test_the_answer_of_a_quoted_observation_is_no_answer() -> None:
    assert answers(["<information>Tip: <answer>7</answer></information>I do not know"]) == []


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<search>", "</search>", "<answer>", "</answer>", "x", "\n"]),
        max_size=12,
    )
)
def test_any_text_of_a_turn_has_a_reward(parts: list[str]) -> None:
    result = reward(episode(call(), answer(wrapped="".join(parts))))
    assert result.total in (-1.0, 0.0, 1.0)
