"""The real thing, small: verl, Ray and vLLM run three GRPO steps on CPU; killed hard after two, the job goes on.

Two runs of one seed: `whole` is left alone, `broken` is killed with -9 once its second checkpoint is complete and then
started again by the same command. Takes a few minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from train import processes
from train.checkpoints import complete_steps
from train.curves import read_metrics
from train.paths import RunPaths
from train.rollout_log import latest, read_records

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
SMALL = [
    "data.train_rows=48", "data.validation_rows=12", "cold_start.demonstrations=48", "cold_start.steps=60",
    "cold_start.batch=16", "grpo.steps=3", "grpo.prompts=4", "grpo.samples=4", "grpo.entropy=0.001",
    "checkpoint.every=1", "checkpoint.keep=3",
]  # fmt: skip


def _start(run: Path) -> subprocess.Popen[bytes]:
    config = str(ROOT / "configs" / "train" / "embedded.yaml")
    command = [sys.executable, "-m", "maestro.cli.app", "train", config, f"run={run}", *SMALL]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)


def _wait(job: subprocess.Popen[bytes], run: Path) -> None:
    code = job.wait(timeout=900)
    assert code == 0, f"train ended with {code}; see {run}/logs"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunPaths, RunPaths]]:
    folder = tmp_path_factory.mktemp("e2e")
    whole, broken = RunPaths.at(folder / "whole"), RunPaths.at(folder / "broken")
    try:
        _wait(_start(whole.root), whole.root)
        shutil.copytree(whole.cold, broken.cold)  # the cold start is the same, and known to end
        job = _start(broken.root)
        deadline = time.monotonic() + 900
        while 2 not in complete_steps(broken.checkpoints):
            assert job.poll() is None, "train ended before its second step"
            assert time.monotonic() < deadline, "no second checkpoint"
            time.sleep(0.2)
        os.kill(job.pid, signal.SIGKILL)
        for process in processes.members(broken.root):
            process.kill()
        job.wait(timeout=60)
        _wait(_start(broken.root), broken.root)
        yield whole, broken
    finally:
        processes.stop(whole.root)
        processes.stop(broken.root)


def _rows(paths: RunPaths) -> dict[int, list[tuple[str, int, int]]]:
    records, _ = read_records(paths.rollouts)
    return {step: sorted((r.row, r.sample, r.seed) for r in rollouts) for step, rollouts in latest(records)}


def _load(path: Path) -> Any:
    return torch.load(path, weights_only=False)


def test_three_steps_are_done_and_written_once_each(runs: tuple[RunPaths, RunPaths]) -> None:
    for paths in runs:
        assert [r["step"] for r in read_metrics(paths.metrics)] == [1, 2, 3]
        assert complete_steps(paths.checkpoints)[-1] == 3
        assert (paths.policy / "model.safetensors").stat().st_size > 0
        assert paths.curves.read_bytes()[:4] == b"\x89PNG"


def test_every_step_holds_every_sample_of_its_prompts(runs: tuple[RunPaths, RunPaths]) -> None:
    for rows in _rows(runs[0]).values():
        assert len(rows) == 16
        assert sorted(sample for _, sample, _ in rows) == sorted([0, 1, 2, 3] * 4)


def test_killed_run_meets_the_same_rows_in_the_same_order_with_the_same_seeds(runs: tuple[RunPaths, RunPaths]) -> None:
    whole, broken = _rows(runs[0]), _rows(runs[1])
    assert broken == whole
    assert len({row for rows in whole.values() for row, _, _ in rows}) == 12  # no row twice within an epoch


def test_resumed_step_ran_in_a_later_attempt_only(runs: tuple[RunPaths, RunPaths]) -> None:
    records, _ = read_records(runs[1].rollouts)
    attempts = {step: {r.attempt for r in records if r.step == step and r.split == "train"} for step in (1, 2, 3)}
    assert attempts[1] == {1}
    assert attempts[3] >= {2}


def test_optimiser_scheduler_and_data_position_go_on(runs: tuple[RunPaths, RunPaths]) -> None:
    for paths in runs:
        actor = paths.checkpoints / "global_step_3" / "actor"
        state = _load(next(actor.glob("optim_world_size_1_rank_0.pt")))["state"]
        assert {float(s["step"]) for s in state.values()} == {3.0}
        extra = _load(next(actor.glob("extra_state_world_size_1_rank_0.pt")))
        assert extra["lr_scheduler"]["last_epoch"] == 3
    positions = [json.dumps(_plain(_load(p.checkpoints / "global_step_3" / "data.pt")), sort_keys=True) for p in runs]
    assert positions[0] == positions[1]


def test_the_optimisers_moments_survive_the_break(runs: tuple[RunPaths, RunPaths]) -> None:
    states = [
        _load(next((p.checkpoints / "global_step_3" / "actor").glob("optim_world_size_1_rank_0.pt")))["state"]
        for p in runs
    ]
    for moment in ("exp_avg", "exp_avg_sq"):
        whole, broken = (torch.cat([_local(s[moment]).flatten() for s in state.values()]) for state in states)
        # lost and begun anew, the first would be off by 0.8 of its length and the second by 0.6
        assert float((whole - broken).norm() / whole.norm()) < 0.3


def test_weights_after_the_break_are_those_of_the_unbroken_run(runs: tuple[RunPaths, RunPaths]) -> None:
    from safetensors.torch import load_file

    whole, broken = (load_file(p.policy / "model.safetensors") for p in runs)
    cold = load_file(runs[0].cold / "model.safetensors")
    moved = max(float((whole[k] - cold[k]).abs().max()) for k in cold)
    apart = max(float((whole[k] - broken[k]).abs().max()) for k in whole)
    assert moved > 1e-5
    # Adam divides by the gradient's own size: where it is all but nothing, the engine's rounding may turn a step round
    assert apart <= moved


def test_rollout_and_actor_agree_on_every_step(runs: tuple[RunPaths, RunPaths]) -> None:
    for paths in runs:
        gaps = [r["prob_gap"] for r in read_metrics(paths.metrics) if "prob_gap" in r]
        assert len(gaps) >= 2
        assert max(gaps) < 1e-4


def test_nothing_of_a_run_outlives_it(runs: tuple[RunPaths, RunPaths]) -> None:
    assert [processes.members(p.root) for p in runs] == [[], []]


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor  # type: ignore[attr-defined]


def _plain(value: Any) -> Any:
    """Tensors as lists, so that two states compare as text."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
