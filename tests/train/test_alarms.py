"""Which streams of step records raise which alarm."""

from __future__ import annotations

from typing import Any

import pytest

from train.collapse import Alarm, alarms, raised


def step(number: int, **fields: Any) -> dict[str, Any]:
    usual = {"reward": 0.8, "entropy": 0.4, "grad_norm": 0.2, "prob_gap": 1e-6, "prob_gap_share": 0.0, "rollouts": 128}
    return {"step": number, "invalid": 0, **usual, **fields}


def names(history: list[dict[str, Any]], max_gap: float = 1e-4) -> list[str]:
    return [alarm.name for alarm in alarms(history, max_gap=max_gap)]


def test_a_healthy_run_raises_nothing() -> None:
    assert names([]) == []
    assert names([step(i, reward=-1 + i / 30, entropy=0.8 - i / 100) for i in range(1, 61)]) == []


@pytest.mark.parametrize("key", ["entropy", "grad_norm", "reward"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_fatal(key: str, value: float) -> None:
    assert alarms([step(3, **{key: value})], max_gap=1e-4) == [
        Alarm("not_a_number", f"step 3: {key} is {value}", fatal=True)
    ]


def test_a_nan_that_verl_logged_as_null_is_fatal_too() -> None:
    assert alarms([step(3, grad_norm=None)], max_gap=1e-4) == [
        Alarm("not_a_number", "step 3: grad_norm is not a finite number", fatal=True)
    ]


def test_a_step_whose_rollouts_all_failed_has_no_reward_and_is_no_nan() -> None:
    assert names([step(1, reward=None, invalid=128)]) == ["experts_failing"]


def test_rollout_and_actor_that_disagree_are_told_with_the_numbers() -> None:
    [alarm] = alarms([step(7, prob_gap=3e-3, prob_gap_share=1.0)], max_gap=1e-4)
    assert (alarm.name, alarm.fatal) == ("rollout_actor_gap", False)
    assert alarm.text.startswith("step 7: rollout and actor probabilities differ by 3.00e-03")


def test_one_micro_batch_that_is_off_is_told_though_the_mean_is_small() -> None:
    assert names([step(7, prob_gap=5e-5, prob_gap_share=0.1)]) == ["rollout_actor_gap"]
    assert names([step(7, prob_gap=None, prob_gap_share=0.1)]) == ["rollout_actor_gap"]


def test_a_wider_limit_is_kept_to() -> None:
    assert names([step(7, prob_gap=3e-3)], max_gap=1e-2) == []


def test_more_than_half_of_the_rollouts_failing_is_told() -> None:
    assert names([step(1, invalid=64)]) == []
    assert names([step(1, invalid=65)]) == ["experts_failing"]


def test_rows_that_are_given_up_are_told_with_their_count_and_share() -> None:
    assert names([step(4, groups=16, rows_given_up=0.0)]) == []
    assert alarms([step(4, groups=16, rows_given_up=2.0)], max_gap=1e-4) == [
        Alarm(
            "rows_given_up",
            "step 4: 2 of 16 rows (12%) are given up: machinery lost their rollouts each time they came back; see "
            "expert_failures and logs/, or raise grpo.requeue",
        )
    ]


@pytest.mark.parametrize(("count", "above", "fatal"), [(8, 0.5, False), (9, 0.5, True), (4, 0.2, True), (16, 1, False)])
def test_a_step_that_gives_most_of_its_rows_up_is_fatal(count: int, above: float, fatal: bool) -> None:
    [alarm] = alarms([step(4, groups=16, rows_given_up=float(count))], max_gap=1e-4, given_up_above=above)
    assert (alarm.name, alarm.fatal) == ("most_rows_given_up" if fatal else "rows_given_up", fatal)
    assert alarm.text.endswith(f"(more than watch.given_up_above, {above:.0%})") is fatal


def test_rows_whose_rollouts_left_no_record_are_counted_too() -> None:
    [alarm] = alarms([step(4, groups=0, rows_given_up=3.0)], max_gap=1e-4)
    assert (alarm.fatal, alarm.text[:27]) == (True, "step 4: 3 of 3 rows (100%) ")


def test_a_fall_of_the_reward_is_fatal_and_named() -> None:
    fallen = [step(i) for i in range(1, 16)] + [step(i, reward=0.0) for i in range(16, 26)]
    assert names(fallen[:20]) == []  # the last ten still hold five good steps: mean 0.4
    [alarm] = alarms(fallen, max_gap=1e-4)
    assert alarm == Alarm("reward_collapse", "step 25: reward fell from 0.80 to 0.00", fatal=True)


def test_a_rising_entropy_is_told() -> None:
    rising = [step(i) for i in range(1, 11)] + [step(i, entropy=3.0) for i in range(11, 21)]
    assert alarms(rising, max_gap=1e-4) == [Alarm("entropy_rising", "step 20: entropy rose from 0.40 to 3.00")]


def test_failed_experts_are_no_collapse_of_the_policy() -> None:
    outage = [step(i) for i in range(1, 16)] + [step(i, reward=None, invalid=128) for i in range(16, 31)]
    assert names(outage) == ["experts_failing"]


def test_an_entropy_that_is_first_known_late_is_no_rise() -> None:
    late = [step(i) | {"entropy": None} for i in range(1, 11)] + [step(i) for i in range(11, 21)]
    for record in late[:10]:
        del record["entropy"]
    assert names(late) == []


def test_too_short_a_run_is_not_judged() -> None:
    assert names([step(i, reward=1.0 if i < 10 else -1.0) for i in range(1, 20)]) == []


def test_a_policy_that_falls_apart_is_told_by_its_form_and_its_length() -> None:
    good = [step(i, malformed=0.02, cut_turns=0.0) for i in range(1, 11)]
    bad = [step(i, malformed=0.5, cut_turns=1.0) for i in range(11, 21)]
    assert alarms(good + bad, max_gap=1e-4) == [
        Alarm("malformed_rising", "step 20: the share of malformed rollouts rose from 2% to 50%"),
        Alarm(
            "turns_cut",
            "step 20: 100% of rollouts hold a turn that ended at its token limit, 0% did at first: the policy rambles, "
            "or protocol.max_turn_tokens is too small",
        ),
    ]


def test_a_run_that_starts_malformed_and_learns_the_form_raises_nothing() -> None:
    assert names([step(i, malformed=max(0.0, 0.9 - i / 20), cut_turns=0.0) for i in range(1, 31)]) == []


def test_the_alarms_of_a_whole_run_are_found_in_its_records_with_first_and_last_step() -> None:
    history = [step(1), step(2, prob_gap=3e-3), step(3), step(4, prob_gap=4e-3), step(5, grad_norm=None)]
    found = raised(history, max_gap=1e-4)
    assert [(r.alarm.name, r.step, r.last, r.times) for r in found] == [
        ("rollout_actor_gap", 2, 4, 2), ("not_a_number", 5, 5, 1),
    ]  # fmt: skip
    assert found[0].alarm.text.startswith("step 2:")
