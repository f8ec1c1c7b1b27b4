"""Two arms over several benchmarks, read from their run folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.compare import compare_runs
from eval.config import EvalConfig
from eval.journal import Journal
from eval.redraw import remember
from maestro.cli.app import app, run
from registry.errors import UserFault

MakeRun = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path, make_trajectory) -> MakeRun:
    def make(benchmark: str, *, name: str | None = None, **arms: Sequence[float | None]) -> Path:
        """A run folder with these scores, one a question, for each arm."""
        folder = tmp_path / (name or benchmark)
        config = EvalConfig.model_validate(
            {
                "benchmark": benchmark,
                "run": str(folder),
                "rows": {"test": 9, "validation": 1},
                "arms": {arm: {"kind": "keyword"} for arm in arms},
            }
        )
        with Journal(folder / "journal.jsonl") as journal:
            for arm, values in arms.items():
                for index, value in enumerate(values):
                    trajectory = make_trajectory(f"{benchmark}-{index}", valid=value is not None)
                    score = None if value is None else {"value": value, "answer": "x", "explanation": ""}
                    journal.append(arm=arm, split="test", score=score, trajectory=trajectory)
        remember(folder, config, None, {})
        return folder

    return make


def test_each_benchmark_is_compared_and_all_of_them_together(make_run: MakeRun) -> None:
    runs = [
        make_run("x", after=[1, 1, 1, 0], before=[0, 1, 0, 0]),  # 0.75 against 0.25
        make_run("y", after=[1, 0], before=[0, 0]),  # 0.5 against 0
        make_run("z", after=[1, None], before=[1, 1]),  # 1 against 1 on the one question that both answered
    ]
    found = compare_runs(runs, "after", "before")
    assert {name: one.difference for name, one in found.benchmarks.items()} == {"x": 0.5, "y": 0.5, "z": 0.0}
    assert found.benchmarks["z"].n == 1
    assert found.macro == pytest.approx((0.75 + 0.5 + 1) / 3)
    assert found.macro_against == pytest.approx((0.25 + 0 + 1) / 3)
    assert (found.signed_rank.n, found.signed_rank.zeros, found.signed_rank.p_greater) == (2, 1, 0.25)


def test_the_lenient_rules_comparison_stands_beside_where_it_differs(
    make_run: MakeRun, make_trajectory, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run("x", after=[1, 1, 0], before=[0, 1, 0]), make_run("y", after=[1, 0], before=[0, 0])]
    assert compare_runs(runs, "after", "before").lenient is None
    with Journal(runs[0] / "journal.jsonl") as journal:  # the lenient rule takes what the arm before RL said of x-0
        journal.append(
            arm="before",
            split="test",
            score={"value": 0.0, "answer": "x", "explanation": ""},
            lenient={"value": 1.0, "answer": "x", "explanation": ""},
            trajectory=make_trajectory("x-0"),
        )
    found = compare_runs(runs, "after", "before")
    assert found.lenient is not None
    assert (found.benchmarks["x"].difference, found.lenient.benchmarks["x"].difference) == (pytest.approx(1 / 3), 0.0)
    assert found.lenient.benchmarks["y"] == found.benchmarks["y"]
    assert (found.macro_against, found.lenient.macro_against) == (pytest.approx(1 / 6), pytest.approx(1 / 3))
    assert found.to_json()["lenient"]["benchmarks"]["x"]["baseline"] == pytest.approx(2 / 3)
    assert run(["evaluate", "compare", *map(str, runs)]) == 0
    printed = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert [line[:4] for line in printed if line and line[0] in ("x", "y", "lenient")] == [
        ["x", "0.667", "0.333", "+33.3"],
        ["lenient", "0.667", "0.667", "+0.0"],
        ["y", "0.500", "0.000", "+50.0"],
        ["lenient", "0.583", "0.333", "+25.0"],
    ]


def test_the_baseline_may_come_from_other_runs(make_run: MakeRun) -> None:
    ours = make_run("x", after=[1, 1])
    ablation = make_run("x", name="without skills", after=[0, 1])
    assert compare_runs([ours], "after", "after", baselines=[ablation]).benchmarks["x"].difference == 0.5


def test_what_cannot_be_compared_is_told(make_run: MakeRun) -> None:
    first = make_run("x", after=[1, 1], before=[0, 1])
    again = make_run("x", name="again", after=[1, 1])
    other = make_run("y", after=[1], nothing=[None])
    with pytest.raises(UserFault, match=r"two runs of the benchmark 'x'(.|\n)*as --baseline-run"):
        compare_runs([first, again], "after", "before")
    with pytest.raises(UserFault, match=r"no arm 'afer'(.|\n)*did you mean 'after'"):
        compare_runs([first], "afer", "before")
    with pytest.raises(UserFault, match="no baseline for the benchmark 'y'"):
        compare_runs([other], "after", "before", baselines=[first])
    with pytest.raises(UserFault, match="share no question"):
        compare_runs([other], "after", "nothing")
    with pytest.raises(UserFault, match="no run is given"):
        compare_runs([], "after", "before")


def test_compare_prints_a_table_and_the_test_over_benchmarks(make_run: MakeRun) -> None:
    runs = [str(make_run(name, after=[1, 1, 1, 0], before=[0, 1, 0, 0])) for name in ("x", "y")]
    done = CliRunner().invoke(app, ["evaluate", "compare", *runs], env={"COLUMNS": "100"}, catch_exceptions=False)
    assert "+50.0" in done.stdout
    assert "over 2 benchmarks (0 equal left out), exact: p 0.25 one-sided" in " ".join(done.stdout.split())
    done = CliRunner().invoke(app, ["evaluate", "compare", *runs, "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["benchmarks"]["y"]["wins"] == 2


def test_power_says_how_many_questions_are_needed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "power", "--difference", "0.1", "--discordant", "0.3"]) == 0
    assert "234 questions show a difference of 10 points in 80 of 100 runs" in capfd.readouterr().out
    # 0.7 against 0.75, independent: 0.7 * 0.25 + 0.3 * 0.75 = 0.4
    assert run(["evaluate", "power", "--difference", "0.05", "--accuracy", "0.7", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["discordant"] == pytest.approx(0.4)
    assert run(["evaluate", "power", "--difference", "0.1"]) == 2
    assert run(["evaluate", "power", "--difference", "0.5", "--discordant", "0.3"]) == 2
    capfd.readouterr()
    assert run(["evaluate", "power", "--difference", "0.5", "--accuracy", "0.7"]) == 2
    told = capfd.readouterr().err
    assert "accuracies are in 0..1" in told and "--difference, --accuracy" in told and "fix:" in told
