"""Several actor processes on one machine without GPUs: FSDP2 over gloo with our optimiser, and what they share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from train.config import TrainConfig
from train.paths import RunPaths
from train.verl_config import environment, platform_settings

# One rank. Every case is a fresh matrix of ones [4, 1], two of its rows on each rank, and a list of updates; an update
# says for each rank which gradient [4] its part of the batch gives. Prints the rank's rows after every update.
RANK = """
import json, sys, torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from train.optimizer import AdamWUnlessFlat

rank, meeting, cases = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
dist.init_process_group("cpu:gloo", init_method="file://" + meeting, rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
policy = MixedPrecisionPolicy(param_dtype=torch.float32, reduce_dtype=torch.float32)
found = {}
for name, updates in cases.items():
    module = torch.nn.Linear(1, 4, bias=False)
    torch.nn.init.ones_(module.weight)
    fully_shard(module, mesh=mesh, mp_policy=policy)
    optimizer = AdamWUnlessFlat(module.parameters(), lr=0.1, weight_decay=0.1)
    found[name] = {"weights": [], "gradients": []}
    for update in updates:
        (module(torch.ones(1, 1)) * torch.tensor(update[rank])).sum().backward()
        found[name]["gradients"].append(module.weight.grad.to_local().flatten().tolist())
        optimizer.step()
        optimizer.zero_grad()
        found[name]["weights"].append(module.weight.to_local().flatten().tolist())
print("FOUND " + json.dumps(found))
dist.barrier()
dist.destroy_process_group()
"""
SAME, NONE = [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]
CASES = {
    "shared": [[[1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0]]],
    "one rank learns": [[NONE, SAME]],
    "one row learns": [[NONE, [0.0, 0.0, 0.0, 1.0]]],
    "then flat": [[SAME, SAME], [NONE, NONE]],
    "against each other": [[SAME, SAME], [SAME, [-1.0, -1.0, -1.0, -1.0]]],
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[list[float]]]]:
    """By case: rows of both ranks, one after the other, after every update."""
    meeting = tmp_path_factory.mktemp("ranks") / "meeting"
    root = Path(__file__).resolve().parents[2]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(meeting), json.dumps(CASES)],
            cwd=root,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [rank.communicate(timeout=100)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    told = [json.loads(output.split("FOUND ")[1]) for output in outputs]
    return {
        case: {
            what: [one + other for one, other in zip(told[0][case][what], told[1][case][what], strict=True)]
            for what in told[0][case]
        }
        for case in CASES
    }


def test_gradients_are_the_mean_of_both_ranks(found: dict[str, dict[str, list[list[float]]]]) -> None:
    assert found["shared"]["gradients"] == [[2.0, 3.0, 4.0, 5.0]]
    assert found["one rank learns"]["gradients"] == [[0.5, 0.5, 0.5, 0.5]]


def test_what_one_rank_finds_moves_the_weights_of_both(found: dict[str, dict[str, list[list[float]]]]) -> None:
    (after,) = found["one rank learns"]["weights"]
    assert after == pytest.approx([0.89] * 4, abs=1e-5)  # the rate against the gradient, and a hundredth of decay


def test_a_shard_without_gradient_takes_the_step_with_the_others(
    found: dict[str, dict[str, list[list[float]]]],
) -> None:
    (after,) = found["one row learns"]["weights"]
    assert after == pytest.approx([0.99, 0.99, 0.99, 0.89], abs=1e-5)  # as on one process: decay reaches every row


@pytest.mark.parametrize("case", ["then flat", "against each other"])
def test_no_rank_moves_where_the_whole_batch_teaches_nothing(
    found: dict[str, dict[str, list[list[float]]]], case: str
) -> None:
    first, second = found[case]["weights"]
    assert found[case]["gradients"][1] == [0.0] * 4
    assert second == first


@pytest.mark.parametrize(("workers", "threads", "slots"), [(1, "4", 16), (2, "2", 16), (8, "1", 28)])
def test_workers_share_the_cores_and_each_has_its_logical_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, threads: str, slots: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    config = TrainConfig.model_validate({"cluster": {"gpus_per_node": workers}})
    assert environment(config, RunPaths.at(tmp_path), 1)["MAESTRO_ACTOR_THREADS"] == threads
    assert platform_settings(config)["ray_kwargs.ray_init.num_cpus"] == slots
