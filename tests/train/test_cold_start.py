"""The cold start: learned and shown pieces, and a policy folder that is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experts.images import Picture
from train.cold_start import run_cold_start
from train.config import ColdStartSection
from train.demonstrations import Demonstration

STEPS = ColdStartSection(steps=20, batch=4, rate=5e-3)  # type: ignore[call-arg]


@pytest.fixture
def calls(picture: Picture) -> list[Demonstration]:
    call = "<search> Counter@@Counting_Skill: How many circles are there?</search>"
    pieces = ((call, True), ("<information> 4 </information>", False), ("<answer> 4</answer>", True))
    return [Demonstration("How many circles are there?", picture, pieces)]


@pytest.mark.parametrize("rehearsed", [True, False], ids=["two kinds", "one kind empty"])
def test_the_loss_falls_and_the_folder_is_whole(
    tiny_policy: Path, tmp_path: Path, calls: list[Demonstration], rehearsed: bool
) -> None:
    losses: list[float] = []
    mixture = [(calls, 0.75), (calls if rehearsed else [], 0.25)]
    last = run_cold_start(
        tiny_policy, tmp_path / "out", mixture, STEPS, seed=0, log=tmp_path / "log",
        on_step=lambda step, loss: losses.append(loss),
    )  # fmt: skip
    assert len(losses) == 20 and losses[-1] == last
    assert last < 0.7 * losses[0]
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {p.name for p in (tmp_path / "out").iterdir()}
    assert [json.loads(line)["step"] for line in (tmp_path / "log").read_text().splitlines()] == [20]


def test_the_same_seed_learns_the_same(tiny_policy: Path, tmp_path: Path, calls: list[Demonstration]) -> None:
    few = STEPS.model_copy(update={"steps": 3})
    losses = [
        run_cold_start(tiny_policy, tmp_path / str(i), [(calls, 1.0)], few, seed=seed, log=tmp_path / "log")
        for i, seed in enumerate((5, 5))
    ]
    assert losses[0] == losses[1]
