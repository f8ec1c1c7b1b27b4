"""The paper's tables from run folders: which run fills which cell, and what is never claimed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eval.tables.build import build
from eval.tables.choice import Asked, own_rows
from eval.tables.measure import interval_of, measure_named
from eval.tables.paper import load_paper
from eval.tables.table import Line, Table
from registry.errors import UserFault

POLICY = {"kind": "policy", "policy": "after", "temperatures": [1.0]}
TEN = (
    "chartqa", "geometry3k", "microvqa", "msearthmcq", "slake", "tallyqa", "hrbench4k", "hrbench8k", "vstar",
    "mathvision",
)  # fmt: skip


def entry(accuracy: float | None, *, n: int = 100, errors: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "n": n,
        "trajectories": n + errors,
        "errors": errors,
        "accuracy": accuracy,
        "ci95": None if accuracy is None else [accuracy - 0.02, accuracy + 0.03],
        "pass_at_k": {"1": accuracy},
        "sc_at_k": {"1": accuracy},
        "latency_s": {"mean": 2.5},
        "cached_share": 0.0,
        **more,
    }


def make_run(
    folder: Path,
    benchmark: str,
    arms: Mapping[str, dict[str, Any]],
    *,
    seed: int = 0,
    status: str = "complete",
    settings: Mapping[str, dict[str, Any]] | None = None,
    checkpoint: str = "c0",
    registry: str = "r0",
) -> Path:
    folder.mkdir(parents=True)
    headline = {name: arms.get(name) for name in ("before", "after")}
    rest = {name: found for name, found in arms.items() if name not in headline}
    record = {"benchmark": benchmark, "seed": seed, "status": status, "rows": {"test": 100}, **headline}
    (folder / "results.json").write_text(json.dumps({**record, "baselines": rest}))
    kinds = {name: POLICY for name in arms} | dict(settings or {})
    made = {
        "versions": {"registry": registry, "policy after": checkpoint},
        "config": {"arms": kinds, "policies": {"after": {"path": "policy"}}},
    }
    (folder / "eval.json").write_text(json.dumps(made))
    return folder


def table(number: int, *runs: Path, row: tuple[str, ...] = (), arm: tuple[str, ...] = (), micro: bool = False) -> Table:
    paper = load_paper()
    rows = own_rows(paper, runs, [Asked.parse(one) for one in row], arm)
    return build(paper, paper.choose([number])[0], rows, micro=micro)


def line(found: Table, label: str, measure: str = "accuracy") -> Line:
    (one,) = [line for line in found.lines if (line.label, line.measure.name) == (label, measure)]
    return one


def shown(found: Table, label: str, column: str, measure: str = "accuracy") -> str:
    return line(found, label, measure).cells[column].text(measure_named(measure))


@pytest.mark.parametrize(
    ("number", "label", "measure", "column", "value"),
    [
        (1, "Maestro (paper)", "accuracy", "average", 70.1),
        (1, "Maestro (paper)", "accuracy", "chartqa", 86.8),
        (1, "Maestro (paper)", "accuracy", "geometry3k", 77.4),
        (1, "Maestro (paper)", "accuracy", "vstar", 88.0),
        (1, "Maestro (paper)", "accuracy", "hrbench4k", 79.6),
        (1, "Maestro (paper)", "accuracy", "mathvision", 43.4),
        (1, "GPT-5 (paper)", "accuracy", "average", 69.3),
        (1, "Gemini-2.5-Pro (paper)", "accuracy", "average", 68.7),
        (1, "GPT-4o (paper)", "accuracy", "geometry3k", 34.1),
        (1, "GLM-4.6V (paper)", "accuracy", "geometry3k", 60.4),
        (1, "DeepEyes (paper)", "accuracy", "vstar", 85.6),
        (1, "Thyme (paper)", "accuracy", "hrbench4k", 77.0),
        (1, "Untrained workflow (paper)", "accuracy", "average", 52.7),
        (2, "Maestro (paper)", "accuracy", "average", 52.7),
        (2, "Maestro* (paper)", "accuracy", "average", 59.5),
        (2, "Gemini-2.5-Pro (paper)", "accuracy", "average", 55.6),
        (2, "Kimi-K2.5 (paper)", "accuracy", "average", 59.2),
        (2, "GPT-5 (paper)", "accuracy", "average", 53.3),
        (2, "DeepEyesV2 (paper)", "accuracy", "average", 45.0),
        (6, "Maestro (paper)", "tokens", "average", 648.2),
        (6, "Maestro (paper)", "latency", "average", 2.88),
        (7, "N = 2 (paper)", "accuracy", "average", 60.7),
        (7, "N = 8 (paper)", "accuracy", "average", 66.5),
        (7, "N = 2 (paper)", "latency", "average", 3.27),
        (7, "N = 8 (paper)", "latency", "average", 4.03),
        (7, "N = 2 (paper)", "accuracy", "vstar", 80.6),
        (7, "N = 8 (paper)", "accuracy", "vstar", 88.0),
        (7, "N = 2 (paper)", "accuracy", "slake", 57.9),
        (7, "N = 8 (paper)", "accuracy", "slake", 65.7),
        (7, "N = 2 (paper)", "accuracy", "erqa", 43.0),
        (7, "N = 8 (paper)", "accuracy", "erqa", 52.3),
        (7, "N = 2 (paper)", "accuracy", "ocrbench", 74.9),
        (7, "N = 8 (paper)", "accuracy", "ocrbench", 85.0),
        (8, "Maestro (paper)", "sc@16 - pass@1", "mathvision", 2.7),
        (8, "Maestro (paper)", "sc@16 - pass@1", "tallyqa", 4.4),
        (9, "Untrained workflow (paper)", "pass@1", "average", 52.7),
        (9, "Maestro (paper)", "pass@1", "average", 70.1),
        (9, "Maestro (paper)", "pass@1", "delta", 17.4),
        (9, "Maestro (paper)", "pass@16", "average", 84.9),
        (9, "Maestro (paper)", "pass@16", "geometry3k", 94.0),
        (9, "Maestro (paper)", "pass@16", "vstar", 92.7),
        (10, "without skill pool (paper)", "accuracy", "delta", -2.7),
        (10, "without model pool (paper)", "accuracy", "delta", -12.1),
        (10, "without model pool (paper)", "accuracy", "geometry3k", 22.3),
        (10, "without model pool (paper)", "accuracy", "mathvision", 27.6),
        (10, "without both (paper)", "accuracy", "average", 55.8),
        (11, "without format reward (paper)", "accuracy", "delta", -13.1),
        (11, "without answer reward (paper)", "accuracy", "delta", -8.8),
    ],
)
def test_the_papers_figures_stand_where_its_text_states_them(
    tmp_path: Path, number: int, label: str, measure: str, column: str, value: float
) -> None:
    found = table(number, make_run(tmp_path / "run", "chartqa", {"after": entry(0.5)}))
    cell = line(found, label, measure).cells[column]
    assert cell.value == value
    assert cell.cited


def test_every_figure_of_the_paper_names_its_section() -> None:
    cited = {one.cited for table in load_paper().tables for one in table.figures}
    assert cited == {"4.2", "4.3", "4.4", "4.6", "E.2", "E.3", "E.4", "G.3", "G.5"}


def test_runs_of_several_benchmarks_fill_one_row_and_its_average(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, name, {"after": entry(0.50 + i / 100)}) for i, name in enumerate(TEN)]
    found = table(1, *runs)
    assert shown(found, "after", "chartqa") == "50.0"
    assert shown(found, "after", "mathvision") == "59.0"
    assert shown(found, "after", "average") == "54.5"
    assert line(found, "after").row == "maestro"


def test_a_benchmark_without_a_run_is_a_dash_and_the_average_says_what_it_is_over(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, name, {"after": entry(0.5)}) for name in ("chartqa", "vstar")]
    found = table(1, *runs)
    assert shown(found, "after", "slake") == "–"
    assert shown(found, "after", "average") == "50.0 (2/10)"
    assert any("Maestro: an arm of kind policy" in one and "SLAKE" in one for one in found.missing)


def test_a_value_of_zero_is_shown_as_zero_and_one_that_is_null_as_a_dash(tmp_path: Path) -> None:
    arms = {"after": entry(0.0), "before": entry(None, n=0, errors=100)}
    found = table(1, make_run(tmp_path / "run", "chartqa", arms))
    assert shown(found, "after", "chartqa") == "0.0"
    assert shown(found, "before", "chartqa") == "–"


def test_runs_with_other_seeds_become_mean_and_standard_deviation(tmp_path: Path) -> None:
    values = {0: 0.60, 1: 0.64, 2: 0.62}
    runs = [
        make_run(tmp_path / f"s{seed}", "vstar", {"after": entry(value)}, seed=seed, checkpoint=f"c{seed}")
        for seed, value in values.items()
    ]
    found = table(1, *runs)
    assert shown(found, "after", "vstar") == "62.0 ± 2.0"
    assert any("3 runs of VStar (seeds 0, 1, 2 from 3 checkpoints)" in note for note in found.notes)


def test_two_checkpoints_with_one_seed_are_not_averaged_but_get_rows_of_their_own(tmp_path: Path) -> None:
    first = make_run(tmp_path / "step100", "vstar", {"after": entry(0.5)}, checkpoint="c1")
    second = make_run(tmp_path / "step380", "vstar", {"after": entry(0.7)}, checkpoint="c2")
    found = table(1, first, second)
    assert shown(found, "after (step100)", "vstar") == "50.0"
    assert shown(found, "after (step380)", "vstar") == "70.0"
    assert not any(one.row == "maestro" and not one.paper for one in found.lines)  # which one is meant isn't guessed


def test_the_same_folder_given_twice_counts_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "vstar", {"after": entry(0.5)})
    assert shown(table(1, run, tmp_path / "." / "run"), "after", "vstar") == "50.0"


def test_row_maps_an_arm_of_a_run_to_the_papers_row_of_that_name(tmp_path: Path) -> None:
    main = make_run(tmp_path / "main", "erqa", {"after": entry(0.5)})
    wide = make_run(tmp_path / "wide", "erqa", {"after": entry(0.6)}, registry="r1")
    found = table(2, main, row=(f"Maestro*={wide}:after",))
    assert line(found, "Maestro*").row == "maestro_star"
    assert shown(found, "Maestro*", "erqa") == "60.0"
    assert shown(found, "after", "erqa") == "50.0"


def test_row_takes_a_name_of_ones_own_with_an_equals_sign_and_the_greedy_arm(tmp_path: Path) -> None:
    arms = {"after": entry(0.5, greedy=0.6, greedy_detail=entry(0.6))}
    run = make_run(tmp_path / "run", "vstar", arms)
    found = table(1, row=(f"ours, k = 1={run}:after/greedy",))
    assert shown(found, "ours, k = 1", "vstar") == "60.0"


def test_a_studys_folder_stands_for_its_runs_and_names_say_which_ablation_is_which(tmp_path: Path) -> None:
    make_run(tmp_path / "study" / "main", "vstar", {"after": entry(0.7)})
    make_run(tmp_path / "study" / "without_format_reward", "vstar", {"after": entry(0.5)}, checkpoint="c1")
    found = table(11, tmp_path / "study")
    assert line(found, "after").row == "maestro"
    assert shown(found, "after (without_format_reward)", "delta") == "-20.0 (1/10)"


def test_settings_of_an_arm_say_which_row_of_the_ablations_it_fills(tmp_path: Path) -> None:
    settings = {
        "a": POLICY | {"without": "skills"},
        "b": POLICY | {"without": "experts", "stand_in": "x"},
        "c": POLICY | {"pool": {"skills": ["one", "two"]}},
        "d": {"kind": "best_expert"},
    }
    arms = {"after": entry(0.7), **{name: entry(0.6) for name in settings}}
    run = make_run(tmp_path / "run", "vstar", arms, settings=settings)
    assert [(one.label, one.row) for one in table(10, run).lines if not one.paper] == [
        ("after", "maestro"), ("a", "without_skills"), ("b", "without_models"),
    ]  # fmt: skip
    assert line(table(7, run), "c").row == "skills_2"
    assert line(table(1, run), "d").row == "best_model"


def test_the_best_value_is_marked_but_neither_a_figure_of_the_paper_nor_the_oracle(tmp_path: Path) -> None:
    arms = {"after": entry(0.6), "before": entry(0.5), "oracle": entry(0.99)}
    run = make_run(tmp_path / "run", "vstar", arms, settings={"oracle": {"kind": "oracle"}})
    best = [one.label for one in table(1, run).lines if one.cells.get("vstar") and one.cells["vstar"].best]
    assert best == ["after"]


def test_the_lowest_latency_is_best_and_one_from_a_cache_does_not_compete(tmp_path: Path) -> None:
    arms = {
        "after": entry(0.6, latency_s={"mean": 2.0}),
        "before": entry(0.5, latency_s={"mean": 3.0}),
        "keyword": entry(0.5, latency_s={"mean": 0.1}, cached_share=0.9),
    }
    found = table(6, make_run(tmp_path / "run", "vstar", arms))
    assert line(found, "after", "latency").cells["vstar"].best
    assert shown(found, "keyword", "vstar", "latency") == "0.10‡"


def test_a_run_with_errors_is_marked_and_its_errors_counted_below(tmp_path: Path) -> None:
    found = table(1, make_run(tmp_path / "run", "vstar", {"after": entry(0.6, errors=3)}, status="incomplete"))
    assert shown(found, "after", "vstar") == "60.0†"
    assert any("errors: 3 (VStar)" in note for note in found.notes)


def test_fewer_questions_than_the_benchmark_has_are_told(tmp_path: Path) -> None:
    found = table(1, make_run(tmp_path / "run", "chartqa", {"after": entry(0.6)}))
    assert any("n = 100 of 2,500 (ChartQA)" in note for note in found.notes)


def test_the_micro_average_counts_questions(tmp_path: Path) -> None:
    small = make_run(tmp_path / "a", "vstar", {"after": entry(0.9, n=100)})
    large = make_run(tmp_path / "b", "slake", {"after": entry(0.5, n=300)})
    found = table(1, small, large, micro=True)
    assert shown(found, "after", "average") == "70.0 (2/10)"
    assert shown(found, "after", "micro") == "60.0 (2/10)"


def test_sc_at_k_stands_beside_pass_at_1_with_its_gain(tmp_path: Path) -> None:
    sampled = entry(0.5, pass_at_k={"1": 0.5, "8": 0.8}, sc_at_k={"1": 0.5, "8": 0.58})
    run = make_run(tmp_path / "run", "vstar", {"after": sampled})
    assert shown(table(8, run), "after", "vstar", "sc@8 - pass@1") == "+8.0"
    assert shown(table(9, run), "after", "vstar", "pass@8") == "80.0"
    assert any("sc@16 of after: a run with samples: 16" in one for one in table(8, run).missing)


def test_runs_with_one_sample_a_question_show_pass_at_1_and_sc_at_1_by_name(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "embedded", {"after": entry(0.6)})
    assert [(one.label, one.measure.name) for one in table(8, run).lines] == [("after", "pass@1"), ("after", "sc@1")]
    upper = table(9, run)
    assert [(one.label, one.measure.name) for one in upper.lines] == [("after", "pass@1")]
    assert upper.names_measures and not table(1, run).names_measures


def test_rows_that_use_no_tokens_are_not_the_best_in_tokens(tmp_path: Path) -> None:
    arms = {
        name: entry(accuracy, tokens={"mean": tokens})
        for name, accuracy, tokens in (("after", 0.9, 133.0), ("before", 0.4, 130.5), ("keyword", 0.5, 0.0))
    }
    found = table(6, make_run(tmp_path / "run", "embedded", arms, settings={"keyword": {"kind": "keyword"}}))
    assert shown(found, "Δ after to the best other", "embedded", "tokens") == "+2.5"
    assert shown(found, "Δ after to the best other", "embedded") == "+40.0"
    best = [one.label for one in found.lines if one.measure.name == "tokens" and one.cells["embedded"].best]
    assert best == ["before"]


def test_a_benchmark_of_ones_own_alone_is_the_table_without_the_papers_columns(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "embedded", {"after": entry(0.6), "before": entry(0.5)})
    found = table(10, run)
    assert [one.key for one in found.columns] == ["embedded", "delta"]
    assert not any(one.paper for one in found.lines)


def test_a_benchmark_of_ones_own_is_in_no_average_of_the_papers_benchmarks(tmp_path: Path) -> None:
    own = make_run(tmp_path / "own", "embedded", {"after": entry(0.9)})
    known = make_run(tmp_path / "known", "vstar", {"after": entry(0.5)})
    found = table(1, own, known)
    assert shown(found, "after", "embedded") == "90.0"
    assert shown(found, "after", "average") == "50.0 (1/10)"


def test_the_benchmarks_own_headline_number_is_taken_and_then_no_foreign_interval(tmp_path: Path) -> None:
    found = table(1, make_run(tmp_path / "run", "hrbench4k", {"after": entry(0.6, average=0.65)}))
    cell = line(found, "after").cells["hrbench4k"]
    assert (cell.value, cell.ci95) == (65.0, None)


def test_the_headline_number_comes_with_its_own_interval(tmp_path: Path) -> None:
    own = {"average_ci95": [0.55, 0.75]}
    found = table(1, make_run(tmp_path / "run", "hrbench4k", {"after": {**entry(0.6, average=0.65), **own}}))
    cell = line(found, "after").cells["hrbench4k"]
    assert (cell.value, cell.ci95) == (65.0, pytest.approx((55.0, 75.0)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no results that can be read"),
        ("[]", "it is no table"),
        ('{"benchmark": "vstar", "after": {"accuracy": "0.5"}}', "no number"),
        ('{"benchmark": "vstar", "after": {"accuracy": NaN}}', "no number"),
        ('{"benchmark": "vstar", "after": [1]}', "no table of numbers"),
        ('{"benchmark": "", "after": {}}', "names no benchmark"),
        ('{"benchmark": "vstar"}', "holds no arm"),
    ],
)
def test_results_that_cannot_be_read_are_one_clear_fault(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(UserFault, match=said):
        table(1, tmp_path)


def test_an_arm_that_no_run_holds_is_refused_with_the_nearest(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "vstar", {"after": entry(0.6)})
    with pytest.raises(UserFault, match="did you mean 'after'"):
        table(1, row=(f"x={run}:aftr",))
    with pytest.raises(UserFault, match="no run is given"):
        table(1)
    with pytest.raises(UserFault, match="is not NAME=RUN"):
        Asked.parse("runs/x")


def test_pass_and_self_consistency_carry_their_own_intervals(tmp_path: Path) -> None:
    own = {
        "pass_at_k": {"1": 0.6, "8": 0.9},
        "sc_at_k": {"1": 0.6, "8": 0.7},
        "pass_at_k_ci95": {"1": [0.55, 0.65], "8": [0.85, 0.94]},
        "sc_at_k_ci95": {"1": [0.55, 0.65], "8": None},
    }
    found = table(9, make_run(tmp_path / "run", "vstar", {"after": entry(0.6, **own)}))
    eight = line(found, "after", "pass@8").cells["vstar"]
    assert (eight.value, eight.ci95) == (90.0, pytest.approx((85.0, 94.0)))
    assert line(found, "after", "pass@1").cells["vstar"].interval(measure_named("pass@1")) == "55.0–65.0"
    assert interval_of(entry(0.6, **own), measure_named("sc@1")) == pytest.approx((55.0, 65.0))
    assert interval_of(entry(0.6, **own), measure_named("sc@8")) is None
    assert interval_of(entry(0.6, **own), measure_named("pass@8 - sc@8")) is None
    assert interval_of(entry(0.6), measure_named("pass@1")) is None
    broken = entry(0.6, pass_at_k_ci95={"1": ["x", 1]})
    with pytest.raises(UserFault, match="'ci95' is no number but 'x'"):
        table(9, make_run(tmp_path / "broken", "vstar", {"after": broken}))


def test_several_runs_of_one_benchmark_have_a_spread_and_no_interval_of_pass_at_k(tmp_path: Path) -> None:
    own = {"pass_at_k": {"1": 0.6, "8": 0.9}, "pass_at_k_ci95": {"1": [0.5, 0.7], "8": [0.8, 1.0]}}
    runs = [make_run(tmp_path / f"s{seed}", "vstar", {"after": entry(0.6, **own)}, seed=seed) for seed in (0, 1)]
    cell = line(table(9, *runs), "after", "pass@8").cells["vstar"]
    assert (cell.value, cell.sd, cell.ci95) == (90.0, 0.0, None)
