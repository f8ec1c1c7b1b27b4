"""A whole evaluation over a small registry of doubles: resuming, outages, refusals, what is written."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eval.benchmarks.parquet import write_parquet
from eval.benchmarks.row import Row
from eval.config import EvalConfig, load_eval_config
from eval.redraw import redraw
from eval.run import Evaluation, evaluate
from registry.errors import UserFault
from registry.registry import Registry

EXPERTS = '''
from pathlib import Path


class Reader:
    """Gives the last word of the question; breaks on "fail" while the file `down` is there."""

    def __init__(self, down=""):
        self.down = down

    def answer(self, prompt, pictures):
        words = prompt.split()
        if "fail" in words and Path(self.down).exists():
            raise RuntimeError("out of order")
        return words[-1]


class Liar:
    def answer(self, prompt, pictures):
        return "nothing"
'''

REGISTRY = """
experts:
  Reader:
    description: reads
    backend: {{type: python, target: "doubles_of_experts:Reader", options: {{down: "{down}"}}}}
  Liar:
    description: lies
    backend: {{type: python, target: "doubles_of_experts:Liar"}}
skills:
  Reading:
    description: reading
    subskills:
      read: {{description: reads, keywords: [say], procedure: {{steps: [{{ask: "{{{{ question }}}}"}}]}}}}
"""

CONFIG = """
benchmark: exact
run: {run}
seed: 3
rows: {{test: 20, validation: 4}}
parquet: {{test: {rows}, validation: {rows}}}
arms:
  random: {{kind: random_pair}}
  best_single_pair: {{kind: best_single_pair}}
  oracle: {{kind: oracle}}
concurrency: 1
expert_concurrency: 1
"""


class World:
    """Files of a small evaluation in a folder, and how to start it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "run"
        self.down = folder / "down"
        (folder / "doubles_of_experts.py").write_text(EXPERTS)
        (folder / "registry.yaml").write_text(REGISTRY.format(down=self.down))
        buffer = io.BytesIO()
        Image.new("RGB", (64, 64), "white").save(buffer, "PNG")
        rows = [
            Row(
                id=f"{index:02d}",
                benchmark="exact",
                question=f"say {'fail ' if index in (3, 5, 8) else ''}word{index}",
                pictures=(buffer.getvalue(),),
                answer=f"word{index}",
                group="odd" if index % 2 else "even",
                split="test",
                extra={"shared": index < 4},
            )
            for index in range(20)
        ]
        write_parquet(rows, folder / "rows.parquet", system_prompt=None)
        self.yaml = folder / "eval.yaml"
        self.yaml.write_text(CONFIG.format(run=self.run, rows=folder / "rows.parquet"))

    def config(self, *overrides: str) -> EvalConfig:
        return load_eval_config(self.yaml, overrides)

    def evaluate(self, *overrides: str, folder: Path | None = None, **options: Any) -> Evaluation:
        registry = Registry.load(self.folder / "registry.yaml")
        return asyncio.run(evaluate(self.config(*overrides), registry, folder or self.run, **options))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.syspath_prepend(str(tmp_path))
    return World(tmp_path)


def stop_after(steps: int, phase: str) -> Callable[[str, int], Callable[[], None]]:
    """A progress display that breaks the run off after some steps of a phase."""

    class Stopped(Exception):
        pass

    def start(name: str, total: int) -> Callable[[], None]:
        left = [steps]

        def advance() -> None:
            left[0] -= 1
            if name == phase and left[0] == 0:
                raise Stopped

        return advance

    start.Stopped = Stopped  # type: ignore[attr-defined]
    return start


ONLY_RANDOM = 'arms={"random":{"kind":"random_pair"}}'


def test_a_run_broken_off_after_seven_of_twenty_rows_runs_thirteen_more_to_the_same_totals(
    world: World,
) -> None:
    stop = stop_after(7, "random")
    with pytest.raises(stop.Stopped):  # type: ignore[attr-defined]
        world.evaluate(ONLY_RANDOM, start_phase=stop)
    unfinished = redraw(world.run).results
    assert (unfinished["status"], unfinished["trajectories"], unfinished["expected"]) == ("incomplete", 7, 20)
    resumed = world.evaluate(ONLY_RANDOM)
    assert resumed.results["status"] == "complete"
    assert resumed.ran == 13
    straight = world.evaluate(ONLY_RANDOM, folder=world.folder / "straight")
    assert straight.ran == 20
    for key in ("accuracy", "n", "errors", "ci95", "families"):
        assert resumed.results["baselines"]["random"][key] == straight.results["baselines"]["random"][key]


def test_a_half_written_last_line_costs_one_row(world: World) -> None:
    world.evaluate(ONLY_RANDOM)
    journal = world.run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-30])
    again = world.evaluate(ONLY_RANDOM)
    assert again.ran == 1
    assert again.repaired_bytes > 0


def test_a_finished_run_runs_nothing_and_says_the_same(world: World) -> None:
    first = world.evaluate()
    second = world.evaluate()
    assert second.ran == 0
    drop = {"seconds"}
    assert {k: v for k, v in first.results.items() if k not in drop} == {
        k: v for k, v in second.results.items() if k not in drop
    }


def test_more_rows_can_be_added_to_a_limited_run(world: World) -> None:
    assert world.evaluate(ONLY_RANDOM, limit=6).ran == 6
    assert world.evaluate(ONLY_RANDOM, limit=10).ran == 4
    assert world.evaluate(ONLY_RANDOM, limit=6).results["baselines"]["random"]["trajectories"] == 6


def test_a_changed_setting_is_refused_with_the_difference(world: World) -> None:
    world.evaluate(ONLY_RANDOM, limit=2)
    with pytest.raises(UserFault, match=r"settings\.seed: 3 -> 4"):
        world.evaluate(ONLY_RANDOM, "seed=4", limit=2)


def test_outages_are_counted_apart_and_only_they_are_repeated(world: World) -> None:
    world.down.touch()
    only_reader = 'arms={"best_single_pair":{"kind":"best_single_pair"}}'
    first = world.evaluate(only_reader, limit=10)
    entry = first.results["baselines"]["best_single_pair"]
    assert (entry["accuracy"], entry["n"], entry["errors"]) == (1.0, 7, 3)
    assert first.results["status"] == "incomplete"
    assert world.evaluate(only_reader, limit=10).ran == 0
    world.down.unlink()
    repeated = world.evaluate(only_reader, limit=10, retry_errors=True)
    assert repeated.ran == 3
    assert repeated.results["status"] == "complete"
    assert repeated.results["baselines"]["best_single_pair"]["n"] == 10


def test_the_oracle_asks_a_pair_that_is_right_and_the_random_pair_does_not_know_it(world: World) -> None:
    results = world.evaluate().results
    assert results["baselines"]["oracle"]["accuracy"] == 1.0
    assert results["baselines"]["best_single_pair"]["pairs"]["odd"]["counts"] == {"Reader@@Reading": 10}
    assert 0.0 < results["baselines"]["random"]["accuracy"] < 1.0
    assert results["matrix"]["best_single_pair"] == {"pair": "Reader@@Reading", "accuracy": 1.0}
    assert results["shared_wordings"]["oracle"]["n"] == 4


def test_results_report_matrix_and_figures_are_left_in_the_folder(world: World) -> None:
    done = world.evaluate()
    written = json.loads((world.run / "results.json").read_text())
    assert written["baselines"]["oracle"]["accuracy"] == 1.0
    assert set(written["baselines"]) == {"random", "best_single_pair", "oracle"}
    for name in ("report.html", "matrix.json", "matrix.png", "summary.png", "journal.jsonl", "identity.json"):
        assert (world.run / name).stat().st_size > 0
    assert done.outputs.report_path == world.run / "report.html"


def test_the_report_can_be_made_anew_from_the_folder_alone(world: World) -> None:
    done = world.evaluate(limit=8)
    size = done.outputs.report_path.stat().st_size
    for name in ("results.json", "report.html", "matrix.png"):
        (world.run / name).unlink()
    again = redraw(world.run)
    assert json.loads(again.results_path.read_text())["baselines"]["oracle"]["n"] == 8
    assert again.report_path.stat().st_size == pytest.approx(size, abs=20)
    assert (world.run / "matrix.png").exists()


def test_a_folder_without_an_evaluation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="holds no evaluation"):
        redraw(tmp_path)


def test_a_missing_checkpoint_is_told_before_anything_runs(world: World) -> None:
    with pytest.raises(UserFault, match="policy 'mine': no checkpoint in nowhere"):
        world.evaluate('policies={"mine":{"path":"nowhere"}}', 'arms={"after":{"kind":"policy","policy":"mine"}}')
    assert not (world.run / "journal.jsonl").exists()


def test_a_benchmark_without_generator_or_file_is_refused(world: World) -> None:
    with pytest.raises(UserFault, match=r"give a file: parquet\.test=PATH"):
        world.evaluate("parquet={}")
