"""Rollouts that fail in the agent loop: whose fault it is, and that nothing is learned from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, AgentLoopWorker

from tests.train.rollout_stage import ANSWER, CALL, QUESTION, Stage


@pytest.mark.parametrize("failure", [ConnectionError("engine died"), None], ids=["raised", "aborted"])
def test_an_engine_that_fails_leaves_nothing_to_learn(stage: Stage, failure: Any) -> None:
    engine = stage.engine(CALL, failure)
    output = stage.play(engine)
    assert output.response_ids[: len(engine.ids(0))] == engine.ids(0)
    assert set(output.response_mask) == {0}
    extra = output.extra_fields["reward_extra_info"]
    assert (output.reward_score, extra["reward_valid"], extra["acc"]) == (0.0, 0.0, None)
    [record] = stage.records()
    assert (record.valid, record.reward, record.answer, record.stop) == (False, None, None, "infrastructure")
    assert record.trajectory is not None and "rollout engine" in record.trajectory["error"]


def test_an_engine_that_fails_at_once_leaves_one_token_that_is_masked(stage: Stage) -> None:
    output = stage.play(stage.engine(ConnectionError()))
    assert (output.response_ids, output.response_mask) == ([stage.processor.tokenizer.eos_token_id], [0])


def test_an_expert_that_fails_leaves_nothing_to_learn_and_the_others_go_on(stage: Stage) -> None:
    broken = "<search> Counter@@Counting_Skill: crash</search>"
    output = stage.play(stage.engine(broken, ANSWER), sample=0)
    assert set(output.response_mask) == {0}
    stage.play(stage.engine(CALL, ANSWER), sample=1)
    first, second = stage.records()
    assert (first.valid, first.reward, first.calls) == (False, None, 1)
    assert (second.valid, second.reward) == (True, 1.0)


def test_rollouts_that_an_outage_swallowed_are_played_again_as_new_requests(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "down").mkdir()  # the expert fails ten calls, then it is back
    engine = stage.engine(CALL, ANSWER)
    outputs = stage.play_all(engine, samples=range(6))
    assert len(list((tmp_path / "down").iterdir())) >= 10
    assert [output.reward_score for output in outputs] == [1.0] * 6
    assert [output.extra_fields["fault"] for output in outputs] == [""] * 6
    records = stage.records()
    assert [(r.valid, r.calls) for r in records] == [(True, 1)] * 6
    assert max(r.waited_s or 0.0 for r in records) > 0
    seeds: dict[str, list[int]] = {}
    for request in engine.requests:
        seeds.setdefault(request["id"], []).append(request["seed"])
    assert len(seeds) > 6  # the engine knows nothing of the plays that were lost
    assert len({own[0] for own in seeds.values()}) == 6  # but every play has the seed of its rollout
    assert list(stage.paths.pauses.glob("*.json")) == []


@pytest.mark.parametrize(
    ("played", "fault"),
    [
        ({}, ""),
        ({"truth": None}, "row"),  # nothing to grade it by
        ({"image": {"type": "image", "bytes": b"\x89PNG broken"}}, "row"),
    ],
    ids=["well", "no gold answer", "broken picture"],
)
def test_a_row_that_is_broken_itself_is_told_from_a_lost_one(stage: Stage, played: dict[str, Any], fault: str) -> None:
    assert stage.play(stage.engine(CALL, ANSWER), **played).extra_fields["fault"] == fault


def test_a_prompt_that_is_too_long_is_the_rows_fault(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of(max_prompt_tokens=8)
    assert stage.play(stage.engine(ANSWER)).extra_fields["fault"] == "row"


@pytest.mark.parametrize("turns", [(ConnectionError("engine died"),), (CALL.replace(QUESTION, "crash"), ANSWER)])
def test_a_rollout_without_engine_or_expert_is_the_machinerys_fault(stage: Stage, turns: tuple[Any, ...]) -> None:
    assert stage.play(stage.engine(*turns)).extra_fields["fault"] == "machinery"


def test_what_verl_is_told_of_a_reward_always_has_the_same_fields(stage: Stage) -> None:
    outputs = [stage.play(stage.engine(CALL, ANSWER)), stage.play(stage.engine(ConnectionError()))]
    outputs.append(stage.play(stage.engine(ANSWER), truth=None))
    keys = [list(output.extra_fields["reward_extra_info"]) for output in outputs]
    assert keys[0] == keys[1] == keys[2]
    assert outputs[2].response_mask == [0] * len(outputs[2].response_ids)
    assert "not graded" in outputs[2].extra_fields["reward_extra_info"]["explanation"]


def actor_inputs(stage: Stage, output: AgentLoopOutput) -> dict[str, Any]:
    """What verl's worker makes of an output before the actor sees it."""
    import torch

    worker: Any = SimpleNamespace(
        processor=stage.processor, tokenizer=stage.processor.tokenizer, _get_mm_processor_kwargs=lambda audios: {}
    )
    ids = torch.tensor([*output.prompt_ids, *output.response_ids])
    inputs = AgentLoopWorker._compute_multi_modal_inputs(worker, output, ids)
    positions = AgentLoopWorker._compute_position_ids(
        worker, ids.unsqueeze(0), torch.ones(1, len(ids), dtype=torch.long), inputs
    )
    assert positions.shape == (1, 4, len(ids))
    return inputs


def test_a_prompt_over_its_limit_is_no_fault_of_the_step(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of(max_prompt_tokens=8)
    engine = stage.engine(ANSWER)
    output = stage.play(engine)
    assert engine.requests == []
    assert (len(output.prompt_ids), output.response_mask, output.multi_modal_data) == (1, [0], {})
    assert stage.records()[0].stop == "overlong_prompt"
    assert "pixel_values" not in actor_inputs(stage, output)


def test_a_broken_picture_costs_its_own_rollout_only(stage: Stage) -> None:
    output = stage.play(stage.engine(ANSWER), image={"type": "image", "bytes": b"\x89PNG broken"})
    assert (len(output.prompt_ids), output.response_mask) == (1, [0])
    [record] = stage.records()
    assert (record.valid, record.stop, record.row) == (False, "infrastructure", "embedded/train/r1/0")
    assert record.trajectory is not None and "row embedded/train/r1/0" in record.trajectory["error"]


def test_a_sampled_image_placeholder_makes_the_rollout_invalid(stage: Stage) -> None:
    placeholder = stage.processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    output = stage.play(stage.engine([placeholder, *stage.ids(ANSWER)]))
    assert (output.response_ids, output.response_mask) == ([stage.processor.tokenizer.eos_token_id], [0])
    assert stage.records()[0].valid is False
    assert actor_inputs(stage, output)["image_grid_thw"].tolist() == [[1, 6, 8]]


def test_half_a_line_of_a_killed_run_does_not_swallow_the_next(stage: Stage) -> None:
    stage.paths.rollouts.write_text('{"step":1,"attempt":1,"spl')
    stage.play(stage.engine(ANSWER))
    assert [r.attempt for r in stage.records()] == [2]
