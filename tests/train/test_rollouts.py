"""The agent loop on a scripted engine: which ids come back, what is asked of the engine, what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.train.rollout_stage import ANSWER, CALL, QUESTION, Stage
from train.engine_client import EngineClient
from train.requeue import row_name


def test_the_response_is_exactly_what_was_sampled_and_shown(stage: Stage) -> None:
    engine = stage.engine(CALL, ANSWER)
    output = stage.play(engine)
    shown = stage.ids("\n<information> 4 </information>\n")
    assert output.response_ids == [*engine.ids(0), *shown, *engine.ids(1)]
    assert output.response_mask == [1] * len(engine.ids(0)) + [0] * len(shown) + [1] * len(engine.ids(1))
    assert output.response_logprobs == [-0.5 * m for m in output.response_mask]
    assert output.reward_score == 1.0
    [record] = stage.records()
    assert (record.valid, record.reward, record.attempt, record.pairs) == (True, 1.0, 2, ("Counter@@Counting_Skill",))
    assert (record.copied, record.calls, record.policy_tokens) == (1, 1, sum(output.response_mask))


def test_the_second_turn_is_asked_with_the_ids_of_the_first(stage: Stage) -> None:
    engine = stage.engine(CALL, ANSWER)
    output = stage.play(engine)
    first, second = engine.requests
    assert first["prompt"] == output.prompt_ids
    assert second["prompt"] == output.prompt_ids + output.response_ids[: -len(engine.ids(1))]
    assert first["id"] == second["id"]
    assert [len(r["images"]) for r in engine.requests] == [1, 1]
    image = stage.processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    assert output.prompt_ids.count(image) == 12  # 96 x 64 pixels enlarged to 128 x 96, one token for 32 x 32


def test_sampled_ids_are_never_encoded_again(stage: Stage) -> None:
    # the same text in pieces that the tokenizer would not choose
    letters = [i for c in f"{QUESTION}" for i in stage.ids(c)]
    assert letters != stage.ids(QUESTION)
    call = [*stage.ids("<search> Counter@@Counting_Skill:"), *stage.ids(" "), *letters, *stage.ids("</search>")]
    output = stage.play(stage.engine(call, ANSWER))
    assert output.response_ids[: len(call)] == call
    assert output.reward_score == 1.0


def test_tokens_behind_the_action_are_dropped_and_an_invented_observation_too(stage: Stage) -> None:
    forged = CALL + "<information> 9 </information><answer> 9</answer>"
    engine = stage.engine(forged, ANSWER)
    output = stage.play(engine)
    assert output.response_ids[: len(stage.ids(CALL))] == stage.ids(CALL)
    assert output.response_mask == [1] * len(stage.ids(CALL)) + [0] * (
        len(output.response_ids) - len(stage.ids(CALL)) - len(stage.ids(ANSWER))
    ) + [1] * len(stage.ids(ANSWER))
    assert output.reward_score == 1.0


def test_an_answer_tag_from_an_expert_answers_nothing(stage: Stage) -> None:
    call = "<search> Counter@@Counting_Skill: tag</search>"
    output = stage.play(stage.engine(call, "I do not know<|im_end|>"), truth="9")
    assert output.reward_score == -1.0
    assert stage.records()[0].answer == 0.0


def test_seeds_differ_by_step_sample_and_turn_but_not_by_process(stage: Stage) -> None:
    def seeds(**of: int) -> list[int]:
        engine = stage.engine(CALL, ANSWER)
        stage.play(engine, **of)
        return [request["seed"] for request in engine.requests]

    first = seeds(step=1, sample=0)
    assert seeds(step=1, sample=0) == first
    drawn = [*first, *seeds(step=2, sample=0), *seeds(step=1, sample=1)]
    assert len(set(drawn)) == 6


@pytest.mark.parametrize("observation", [16, 32])
def test_no_turn_is_asked_for_less_than_one_token(stage_of: Callable[..., Stage], observation: int) -> None:
    lengths = {"max_turn_tokens": 40, "max_observation_tokens": observation, "max_trajectory_tokens": 41 + observation}
    stage = stage_of(**lengths)
    engine = stage.engine(CALL, CALL, CALL, CALL, CALL, CALL)
    output = stage.play(engine)
    asked = [request["max_tokens"] for request in engine.requests]
    assert asked[0] == 40
    assert min(asked) >= 1
    assert len(output.response_ids) <= 41 + observation
    assert stage.records()[0].stop == "budget_exhausted"


def test_the_tiny_policys_tags_stop_the_engine_by_id(stage: Stage) -> None:
    engine = stage.engine(ANSWER)
    stage.play(engine)
    tokens = ("</search>", "</answer>", "<|im_end|>")
    assert engine.requests[0]["stop_token_ids"] == [stage.processor.tokenizer.convert_tokens_to_ids(t) for t in tokens]
    assert (engine.requests[0]["detokenize"], "stop" in engine.requests[0]) == (False, False)


def test_rows_with_one_id_in_two_splits_are_not_mixed_up(stage: Stage) -> None:
    row = {"data_source": "a", "extra_info": {"id": "7", "split": "train", "index": 0}}
    assert row_name(row) == ("a", "train", "7", "0")
    others = [{**row, "data_source": "b"}, {**row, "extra_info": {"id": "7", "split": "test"}}]
    assert len({row_name(one) for one in (row, *others)}) == 3


def test_whole_trajectories_are_kept_for_one_sample_of_a_group(stage: Stage) -> None:
    for sample in (0, 1):
        stage.play(stage.engine(ANSWER), sample=sample)
    kept = [record.trajectory for record in stage.records()]
    assert kept[1] is None and kept[0] is not None
    assert json.loads(json.dumps(kept[0]))["response_ids"] == stage.ids(ANSWER)


def test_a_single_engine_is_looked_up_once_and_asked_directly() -> None:
    async def acquire(request_id: str) -> tuple[str, Any]:
        asked.append(f"lookup for {request_id}")
        return "server-1", SimpleNamespace(generate=SimpleNamespace(remote=generate))

    async def generate(request_id: str, **_: Any) -> SimpleNamespace:
        asked.append("generate")
        requests.add(request_id)
        return SimpleNamespace(extra_fields={"global_steps": 5})

    async def two_turns() -> Any:
        for _ in range(2):
            output = await client.generate(request_id="r", prompt_ids=[1], sampling_params={}, image_data=None)
        return output

    asked: list[str] = []
    requests: set[str] = set()
    client = EngineClient(SimpleNamespace(_acquire_server=acquire), replicas=1)
    output = asyncio.run(two_turns())
    assert asked == ["lookup for r", "generate", "generate"]
    assert len(requests) == 2  # an engine refuses an id that it still holds
    assert output.extra_fields == {"global_steps": 5, "min_global_steps": 5, "max_global_steps": 5}
