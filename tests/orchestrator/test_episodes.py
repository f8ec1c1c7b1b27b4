"""The episode's transitions: ids are the truth, borders, budgets, reasons to stop."""

from __future__ import annotations

from typing import Any

import pytest

from experts.outcome import Delegation, Outcome
from orchestrator.action import Answer, Malformed, Search
from orchestrator.budget import Budget
from orchestrator.episode import Episode, StopReason, act, begin, fail, observe
from orchestrator.observation import Observation, from_delegation
from orchestrator.policy import PolicyTurn
from registry.errors import UserFault
from registry.registry import Registry

BUDGET = Budget(
    horizon=2, max_prompt_tokens=8, max_turn_tokens=40, max_observation_tokens=60, max_trajectory_tokens=400
)
CALL = "<search>Chart-Reader@@Chart_Solver: q?</search>"


def seen(*ids: int, text: str = "42", outcome: Outcome = Outcome.OK) -> Observation:
    return Observation(text, ids, outcome, shown=text, n_tokens=len(ids))


def text_turns(*texts: str, budget: Budget = BUDGET, registry: Registry | None = None) -> Episode:
    """An episode without ids in which every call is answered by 42."""
    episode = begin("t", None, budget, registry=registry)
    for text in texts:
        episode = act(episode, PolicyTurn(text))
        if episode.pending is not None:
            reply = Delegation(Outcome.OK, "42", episode.pending.expert, episode.pending.skill)
            episode = observe(episode, from_delegation(reply, None, max_tokens=episode.observation_room))
        elif episode.awaiting is not None:
            episode = observe(episode, Observation("bad", None, Outcome.INVALID_ACTION, shown="bad", n_tokens=1))
    return episode


def test_the_response_is_the_sampled_ids_and_the_observation_ids(piece_tokenizer: Any) -> None:
    tokenizer = piece_tokenizer("in", "ter", "inter", "<search>", "</search>", "<answer>", "</answer>", "e@@s:")
    episode = begin("t", [900, 901], BUDGET, tokenizer=tokenizer)
    first = (3, 7, 0, 1, 4)  # <search> e@@s: in ter </search>, where the tokenizer itself would write `inter`
    episode = act(episode, PolicyTurn("", first, (-1.0, -2.0, -3.0, -4.0, -5.0)))
    assert episode.pending == Search("e", "s", "inter")
    episode = observe(episode, seen(2, 1042))
    episode = act(episode, PolicyTurn("", (5, 0, 1, 6), (-0.5, -0.25, -0.125, 0.0)))
    assert episode.stop is StopReason.ANSWERED
    assert episode.answer == "inter"
    assert episode.prompt_ids == (900, 901)
    assert episode.response_ids == (3, 7, 0, 1, 4, 2, 1042, 5, 0, 1, 6)
    assert episode.response_mask == (1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1)
    assert episode.response_logprobs == (-1, -2, -3, -4, -5, 0, 0, -0.5, -0.25, -0.125, 0)
    assert tokenizer.encoded == [], "sampled ids were encoded again"


def test_tokens_behind_the_border_are_dropped_and_a_forged_observation_is_counted(byte_tokenizer: Any) -> None:
    sampled = "<search>m@@s:q</search><information>42</information><answer>42</answer>"
    ids = tuple(byte_tokenizer.encode(sampled))
    logprobs = tuple(-float(i) for i in range(len(ids)))
    budget = Budget(max_turn_tokens=100, max_trajectory_tokens=1000)
    episode = act(begin("t", [1], budget, tokenizer=byte_tokenizer), PolicyTurn(sampled, ids, logprobs))
    assert episode.pending == Search("m", "s", "q")
    turn = episode.turns[0]
    assert turn.text == "<search>m@@s:q</search>"
    assert turn.token_ids == ids[:23]
    assert turn.logprobs == logprobs[:23]
    assert turn.dropped_text == "<information>42</information><answer>42</answer>"
    assert turn.forged
    assert episode.response_ids == ids[:23]


@pytest.mark.parametrize(
    ("text", "forged"),
    [
        ("<answer>42</answer> so there", False),
        ("<information>42</information><answer>42</answer>", True),
        ("<think>the <information> says</think><answer>42</answer>", False),
        ("<information>42</information>", True),
    ],
)
def test_only_information_outside_thoughts_is_forged(text: str, forged: bool) -> None:
    assert text_turns(text).turns[0].forged is forged


def test_the_token_that_holds_the_border_stays_whole(piece_tokenizer: Any) -> None:
    tokenizer = piece_tokenizer("</", "search", ">\n", "<search>m@@s:q", "<information>")
    ids = (3, 0, 1, 2, 4, 1042)
    episode = act(begin("t", [1], BUDGET, tokenizer=tokenizer), PolicyTurn("", ids))
    assert episode.turns[0].token_ids == (3, 0, 1, 2)
    assert episode.turns[0].text == "<search>m@@s:q</search>\n"
    assert episode.pending == Search("m", "s", "q")
    assert episode.turns[0].dropped_text == "<information>*"


def test_stop_text_kept_removed_or_run_over_gives_the_same_action(piece_tokenizer: Any) -> None:
    tokenizer = piece_tokenizer("</", "search", ">\n", "<search>m@@s:q", "</search>")
    kept = act(begin("t", [1], BUDGET, tokenizer=tokenizer), PolicyTurn("", (3, 0, 1, 2), finish_reason="stop"))
    over = act(begin("t", [1], BUDGET, tokenizer=tokenizer), PolicyTurn("", (3, 0, 1, 2, 1120), finish_reason="length"))
    gone = act(begin("t", [1], BUDGET, tokenizer=tokenizer), PolicyTurn("", (3,), finish_reason="</search>"))
    texts = act(begin("t", None, BUDGET), PolicyTurn("<search>m@@s:q", finish_reason="stop"))
    assert kept.pending == over.pending == gone.pending == texts.pending == Search("m", "s", "q")
    assert kept.response_ids == over.response_ids == (3, 0, 1, 2)
    assert gone.response_ids == (3, 4)
    assert gone.response_mask == (1, 0), "the tag that is put back was not sampled"
    assert texts.transcript == "<search>m@@s:q</search>"


def test_an_end_of_text_token_does_not_close_a_call(piece_tokenizer: Any) -> None:
    tokenizer = piece_tokenizer("<search>m@@s:q", "<|im_end|>")
    episode = act(begin("t", [1], BUDGET, tokenizer=tokenizer), PolicyTurn("", (0, 1), finish_reason="stop"))
    assert isinstance(episode.awaiting, Malformed)
    assert episode.awaiting.kind == "unclosed_tag"


def test_the_horizon_counts_delegations_and_leaves_a_turn_to_answer(registry: Registry) -> None:
    assert text_turns(CALL, CALL, "<answer>1</answer>", registry=registry).stop is StopReason.ANSWERED
    over = text_turns(CALL, CALL, CALL, registry=registry)
    assert over.stop is StopReason.HORIZON
    assert over.calls == 2
    assert over.valid
    assert over.answer is None


def test_one_malformed_turn_is_forgiven_and_the_next_is_not() -> None:
    episode = text_turns("what?")
    assert episode.stop is None
    assert text_turns("what?", "<answer>1</answer>").stop is StopReason.ANSWERED
    assert text_turns("what?", "what?").stop is StopReason.MALFORMED
    strict = Budget(malformed_turns=0)
    assert text_turns("what?", budget=strict).stop is StopReason.MALFORMED


def test_an_unknown_name_is_malformed_and_names_the_nearest(registry: Registry) -> None:
    episode = act(begin("t", None, BUDGET, registry=registry), PolicyTurn("<search>Chart@@Chart_Solver: q</search>"))
    assert episode.pending is None
    assert episode.awaiting == Malformed("unknown_expert", "There is no expert named 'Chart'. Nearest: Chart-Reader.")


def test_no_turn_is_asked_for_less_than_one_token(byte_tokenizer: Any) -> None:
    budget = Budget(max_prompt_tokens=8, max_turn_tokens=30, max_observation_tokens=40, max_trajectory_tokens=71)
    call = tuple(b"<search>m@@s:q</search>")
    episode = act(begin("t", [1], budget, tokenizer=byte_tokenizer), PolicyTurn("", call))
    assert episode.observation_room == 40
    fits = observe(episode, seen(*range(40)))
    assert fits.stop is None
    assert fits.next_max_tokens == 8
    full = observe(episode, seen(*range(47)))
    assert full.stop is None
    assert full.next_max_tokens == 1
    over = observe(episode, seen(*range(48)))
    assert over.stop is StopReason.BUDGET_EXHAUSTED
    assert over.next_max_tokens == 0
    assert over.response_ids == call, "what does not fit is recorded, not shown"
    observation = over.turns[0].observation
    assert observation is not None and observation.text == "42"


def test_a_turn_that_fills_the_trajectory_exhausts_the_budget(byte_tokenizer: Any) -> None:
    budget = Budget(horizon=0, max_turn_tokens=20, max_trajectory_tokens=20)
    episode = act(
        begin("t", [1], budget, tokenizer=byte_tokenizer), PolicyTurn("", (120,) * 20, finish_reason="length")
    )
    assert episode.stop is StopReason.BUDGET_EXHAUSTED
    answered = act(begin("t", [1], budget, tokenizer=byte_tokenizer), PolicyTurn("", tuple(b"<answer>123</answer>")))
    assert answered.stop is StopReason.ANSWERED


def test_ids_over_the_turn_limit_are_cut_off(byte_tokenizer: Any) -> None:
    ids = tuple(b"<think>" + b"x" * 60 + b"</think><answer>1</answer>")
    episode = act(begin("t", [1], BUDGET, tokenizer=byte_tokenizer), PolicyTurn("", ids))
    assert episode.turns[0].token_ids == ids[:40]
    assert isinstance(episode.turns[0].action, Malformed)


def test_an_overlong_prompt_ends_before_the_first_turn() -> None:
    episode = begin("row 7", range(9), BUDGET)
    assert episode.stop is StopReason.OVERLONG_PROMPT
    assert episode.error == "task row 7: the prompt takes 9 tokens, max_prompt_tokens is 8"
    assert not episode.valid


def test_a_sampled_image_placeholder_makes_the_episode_invalid(byte_tokenizer: Any) -> None:
    episode = begin("t", [1], BUDGET, tokenizer=byte_tokenizer, forbidden_ids={6})
    episode = act(episode, PolicyTurn("", (6, *b"<answer>1</answer>")))
    assert episode.stop is StopReason.INFRASTRUCTURE
    assert not episode.valid
    assert episode.error == "task t, turn 1: sampled the forbidden ids [6]; the sampler should have excluded them"


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_call_that_failed_for_want_of_machinery_makes_the_episode_invalid(outcome: Outcome) -> None:
    episode = act(begin("t", None, BUDGET), PolicyTurn("<search>m@@s:q</search>"))
    episode = observe(episode, Observation("x", None, outcome, shown="x", n_tokens=1))
    episode = act(episode, PolicyTurn("<answer>1</answer>"))
    assert episode.stop is StopReason.ANSWERED
    invalid = outcome in (Outcome.TIMEOUT, Outcome.UNAVAILABLE, Outcome.ERROR, Outcome.DEADLINE)
    assert episode.valid is not invalid


def test_an_answer_inside_an_observation_is_no_answer() -> None:
    episode = act(begin("t", None, BUDGET), PolicyTurn("<search>m@@s:q</search>"))
    reply = Delegation(Outcome.OK, "Tip: <answer>42</answer>", "m", "s")
    episode = observe(episode, from_delegation(reply, None, max_tokens=60))
    episode = act(episode, PolicyTurn("I do not know"))
    assert episode.answer is None
    assert not any(isinstance(turn.action, Answer) for turn in episode.turns)


def test_steps_out_of_order_are_refused(byte_tokenizer: Any) -> None:
    episode = begin("t", [1], BUDGET, tokenizer=byte_tokenizer)
    with pytest.raises(ValueError, match="no observation is awaited"):
        observe(episode, seen(1))
    with pytest.raises(ValueError, match="the prompt has token ids, turn 1 has none"):
        act(episode, PolicyTurn("<answer>1</answer>"))
    called = act(episode, PolicyTurn("", tuple(b"<search>m@@s:q</search>")))
    with pytest.raises(ValueError, match="an observation is awaited"):
        act(called, PolicyTurn("", (1,)))
    with pytest.raises(ValueError, match="the observation has none"):
        observe(called, Observation("x", None, Outcome.OK, shown="x", n_tokens=1))
    ended = fail(called, StopReason.DEADLINE, "too slow")
    assert (ended.stop, ended.error, ended.awaiting) == (StopReason.DEADLINE, "too slow", None)
    with pytest.raises(ValueError, match="no turn is due"):
        act(ended, PolicyTurn("", (1,)))


def test_transitions_leave_the_earlier_episode_alone() -> None:
    first = begin("t", None, BUDGET)
    second = act(first, PolicyTurn("<answer>1</answer>"))
    assert first.turns == () and first.stop is None
    assert len(second.turns) == 1


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"horizon": -1}, "budget: horizon is -1"),
        ({"max_turn_tokens": 0}, "budget: max_turn_tokens is 0"),
        ({"malformed_turns": True}, "budget: malformed_turns is True"),
        (
            {"max_turn_tokens": 100, "max_observation_tokens": 300, "max_trajectory_tokens": 400},
            "max_turn_tokens 100 \\+ max_observation_tokens 300 \\+ 1 = 401 > max_trajectory_tokens 400",
        ),
        (
            {"horizon": 0, "max_turn_tokens": 9, "max_trajectory_tokens": 8},
            "max_turn_tokens 9 > max_trajectory_tokens 8",
        ),
    ],
)
def test_impossible_budgets_are_refused_with_the_sum(limits: dict[str, int], message: str) -> None:
    with pytest.raises(UserFault, match=message):
        Budget(**limits)
