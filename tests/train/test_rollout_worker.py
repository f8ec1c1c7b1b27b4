"""What the worker works out once a row and hands over once a group."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

from train import rollout_worker
from train.rollout_worker import RolloutWorker


class _Counting:
    """Stands in for verl's worker: counts how often it is asked."""

    pixels = positions = 0

    def _compute_multi_modal_inputs(self, output: Any, ids: torch.Tensor) -> dict[str, Any]:
        _Counting.pixels += 1
        return {"pixel_values": torch.ones(4, 8), "mm_token_type_ids": torch.zeros(1, 3)}

    def _compute_position_ids(self, ids: torch.Tensor, mask: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor:
        _Counting.positions += 1
        return torch.arange(ids.shape[1]).repeat(1, 4, 1)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    _Counting.pixels = _Counting.positions = 0
    for name in ("_compute_multi_modal_inputs", "_compute_position_ids"):
        monkeypatch.setattr(rollout_worker._Worker, name, getattr(_Counting, name))
    made = RolloutWorker.__new__(RolloutWorker)
    rollout = SimpleNamespace(n=3, val_kwargs=SimpleNamespace(n=1))
    made.config = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=rollout))
    made._prepare()
    return made


IMAGE = object()


def _rollout(response: list[int], image: object = IMAGE) -> AgentLoopOutput:
    return AgentLoopOutput(
        prompt_ids=[1, 2, 3],
        response_ids=response,
        response_mask=[1] * len(response),
        response_logprobs=[-0.5] * len(response),
        multi_modal_data={"images": [image]},
        reward_score=1.0,
        num_turns=2,
        metrics=AgentLoopMetrics(),
        extra_fields={"min_global_steps": 4, "max_global_steps": 4},
    )


def _store(
    worker: Any, monkeypatch: pytest.MonkeyPatch, rollouts: list[AgentLoopOutput], validate: bool = False
) -> list[dict]:
    puts: list[dict[str, Any]] = []

    async def put(**call: Any) -> None:
        puts.append(call)

    monkeypatch.setattr(rollout_worker.tq, "async_kv_batch_put", put)

    async def run() -> None:
        for number, rollout in enumerate(rollouts):
            row = {"uid": "u", "session_id": number, "global_steps": 5, "raw_prompt": ["a picture"]}
            row |= {"data_source": "charts", "reward_model": {"ground_truth": "7"}}
            await worker._agent_loop_postprocess(rollout, validate, **row)

    asyncio.run(run())
    return puts


def test_a_group_is_stored_once_and_only_when_whole(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _store(worker, monkeypatch, [_rollout([7]), _rollout([7, 8])]) == []
    (put,) = _store(worker, monkeypatch, [_rollout([7, 8, 9])])
    assert put["keys"] == ["u_0_0", "u_1_0", "u_0_0"]
    assert put["partition_id"] == "train"
    assert [tag["response_len"] for tag in put["tags"]] == [1, 2, 3]
    assert [tag["seq_len"] for tag in put["tags"]] == [4, 5, 6]
    assert put["tags"][0]["min_global_steps"] == 4


def test_whose_fault_a_lost_rollout_is_stands_in_its_tag(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rollouts = [_rollout([7]), _rollout([7]), _rollout([7])]
    rollouts[1].extra_fields["fault"] = "machinery"
    (put,) = _store(worker, monkeypatch, rollouts)
    assert [tag["fault"] for tag in put["tags"]] == ["", "machinery", ""]
    fields = [getattr(one, "data", one) for one in put["fields"]["extra_fields"]]
    assert all(set(one) == {"min_global_steps", "max_global_steps"} for one in fields)


def test_validation_keeps_the_columns_of_its_rows_and_training_those_that_are_read(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (seen,) = _store(worker, monkeypatch, [_rollout([7])], validate=True)
    assert {"uid", "reward_model", "data_source"} <= set(seen["fields"].keys())
    (put,) = _store(worker, monkeypatch, [_rollout([7]), _rollout([7]), _rollout([7])])
    assert {"uid", "reward_model"} <= set(put["fields"].keys())
    assert not {"data_source", "session_id", "global_steps"} & set(put["fields"].keys())


def test_the_raw_prompt_stays_with_the_worker(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (put,) = _store(worker, monkeypatch, [_rollout([7])], validate=True)
    assert put["partition_id"] == "val"
    assert "raw_prompt" not in put["fields"].keys()  # noqa: SIM118  (a TensorDict)
    assert put["fields"]["input_ids"][0].tolist() == [1, 2, 3, 7]
    assert put["fields"]["loss_mask"][0].tolist() == [1]


def test_pixels_are_worked_out_once_a_picture(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _store(worker, monkeypatch, [_rollout([7]), _rollout([8]), _rollout([9])])
    assert _Counting.pixels == 1
    _store(worker, monkeypatch, [_rollout([7], image=object())])
    assert _Counting.pixels == 2


def test_a_shorter_rollout_takes_the_positions_of_a_longer_one(worker: Any) -> None:
    inputs = worker._compute_multi_modal_inputs(_rollout([7]), torch.ones(4))
    long, short, longer = (torch.ones(1, n, dtype=torch.long) for n in (6, 4, 8))
    first = worker._compute_position_ids(long, long, dict(inputs))
    second = worker._compute_position_ids(short, short, dict(inputs))
    third = worker._compute_position_ids(longer, longer, dict(inputs))
    assert _Counting.positions == 2
    assert first[0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert second[0, 0].tolist() == [0, 1, 2, 3]
    assert third.shape == (1, 4, 8)
