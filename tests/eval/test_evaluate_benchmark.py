"""`evaluate` on a benchmark that a user dropped in as a YAML file: both rules, its groups, faulty rows, resuming."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from made_benchmark import READER, YAML, Birds, row, stop_after
from rich.console import Console

from eval.redraw import redraw
from eval.replay import replay
from eval.report.runs import write_runs
from eval.run import Evaluation, evaluate
from maestro.cli.results_table import tell_results
from registry.errors import UserFault
from registry.registry import Registry


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Birds:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Birds(tmp_path, [row(number) for number in range(12)])


def start(birds: Birds, folder: Path | None = None, *, settings: dict[str, Any] | None = None, **options: Any) -> Any:
    registry = Registry.load(birds.folder / "registry.yaml")
    config = birds.config(**(settings or {}))
    done: Evaluation = asyncio.run(evaluate(config, registry, folder or birds.run, **options))
    return done


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def printed(results: Any) -> str:
    console = Console(file=io.StringIO(), width=80)
    tell_results(console, results)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_both_rules_and_the_groups_are_written_and_shown(birds: Birds) -> None:
    results = start(birds).results
    entry = results["baselines"]["reader"]
    assert (entry["accuracy"], entry["lenient"]["accuracy"], entry["lenient"]["differ"]) == (8 / 12, 1.0, 4)
    assert (results["benchmark"], results["title"], results["skipped"]) == ("birds", "Birds", {})
    assert results["scorer"] == {"official": "chartqa_official", "lenient": "chartqa"}
    assert {name: one["accuracy"] for name, one in entry["groupings"]["place"]["groups"].items()} == {
        "lake": 4 / 6,
        "wood": 4 / 6,
    }
    assert entry["average"] == results["average"]["reader"] == pytest.approx(4 / 6)
    records = {record["trajectory"]["row_id"]: record for record in lines(birds.run / "journal.jsonl")}
    assert records["birds/00"]["groups"] == {"place": "lake", "size": "small"}
    assert (records["birds/00"]["score"]["value"], records["birds/00"]["lenient"]["value"]) == (0.0, 1.0)
    assert "lenient" not in records["birds/01"]
    scores = {line["row"]: line for line in lines(birds.run / "scores.jsonl")}
    assert (scores["birds/00"]["value"], scores["birds/00"]["lenient"], "lenient" in scores["birds/01"]) == (
        0,
        1,
        False,
    )
    shown = printed(results)
    assert "len." in shown and "0.667" in shown and "1.000" in shown
    assert "chartqa (len.) takes answers that chartqa_official (acc.) does not: reader 4." in " ".join(shown.split())
    assert "wood" in shown and "small" in shown


def test_a_line_below_the_table_says_what_its_short_titles_mean(birds: Birds) -> None:
    results = start(birds).results
    shown = " ".join(printed(results).split())
    assert (
        "err.: could not run or be scored, neither right nor wrong; malf.: share with a malformed turn; calls: mean "
        "calls to experts; p50 s: median seconds of an episode (cached calls take none)."
    ) in shown
    assert "greedy" not in shown and "unseen" not in shown
    entry = {**results["baselines"]["reader"], "greedy": 0.5}
    with_policy = {**results, "after": entry, "unseen": {"after": entry}}
    assert (
        "greedy: accuracy at temperature 0 (rules have none); unseen: accuracy under wordings never seen; err.:"
    ) in " ".join(printed(with_policy).split())


def test_a_finished_run_says_the_same_from_its_journal_alone(birds: Birds) -> None:
    first = start(birds)
    again = redraw(birds.run)
    drop = {"seconds"}
    assert {k: v for k, v in first.results.items() if k not in drop} == {
        k: v for k, v in again.results.items() if k not in drop
    }
    assert start(birds).ran == 0


def test_faulty_rows_are_left_out_counted_and_shown(birds: Birds) -> None:
    faulty = [row(20, image=None), row(21, answer=None), row(3)]
    birds.write([*(row(number) for number in range(12)), *faulty])
    results = start(birds, settings={"data": {"most_faulty": 0.3}}).results
    assert results["skipped"] == {"no image": 1, "no gold answer": 1, "duplicate id": 1}
    assert (results["rows"]["test"], results["status"]) == (12, "complete")
    said = "3 rows could not be used and are in no number: no image 1, no gold answer 1, duplicate id 1."
    assert said in " ".join(printed(results).split())


def test_a_faulty_row_that_ends_the_run_is_named_and_what_ran_before_is_kept(birds: Birds) -> None:
    birds.write([*(row(number) for number in range(40)), row(40, image=None)])
    with pytest.raises(UserFault, match="no image") as caught:
        start(birds, settings={"data": {"on_fault": "fail"}})
    assert "line 41" in str(caught.value.where)
    assert len(lines(birds.run / "journal.jsonl")) == 40
    birds.write([row(number) for number in range(41)])
    assert start(birds, settings={"data": {"on_fault": "fail"}}).ran == 1


def test_a_renamed_column_is_told_before_anything_runs(birds: Birds) -> None:
    birds.write([row(0, question=None, qestion="say 1234")])
    with pytest.raises(UserFault, match="no column 'question' for the question") as caught:
        start(birds)
    assert "did you mean 'qestion'?" in str(caught.value.fix)
    assert lines(birds.run / "journal.jsonl") == []


def test_data_that_is_not_there_is_told_before_anything_runs(birds: Birds) -> None:
    with pytest.raises(UserFault, match="no such folder or file"):
        start(birds, settings={"data": {"root": str(birds.folder / "nowhere")}})
    assert lines(birds.run / "journal.jsonl") == []


def test_a_run_broken_off_goes_on_to_the_same_scores(birds: Birds) -> None:
    stopped, display = stop_after(5, "reader")
    with pytest.raises(stopped):
        start(birds, start_phase=display)
    journal = birds.run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])  # killed in the middle of a line
    assert start(birds).ran == 8
    start(birds, birds.folder / "straight")
    assert (birds.run / "scores.jsonl").read_bytes() == (birds.folder / "straight" / "scores.jsonl").read_bytes()


def test_a_benchmark_whose_rule_has_changed_is_another_setting(birds: Birds) -> None:
    start(birds, limit=2)
    (birds.folder / "birds.yaml").write_text(YAML.replace("official: chartqa_official", "official: exact"))
    with pytest.raises(UserFault, match="this run was started with other settings"):
        start(birds, limit=2)
    (birds.folder / "birds.yaml").write_text(YAML.replace("title: Birds", "title: All birds"))
    assert start(birds, limit=2).results["title"] == "All birds"


def test_saved_trajectories_are_scored_again_when_the_file_of_the_benchmark_is_gone(birds: Birds) -> None:
    start(birds)
    (birds.folder / "birds.yaml").unlink()
    assert replay(birds.run).changes == []
    assert [change.row for change in replay(birds.run, lenient=True).changes] == [
        "birds/00", "birds/03", "birds/06", "birds/09",
    ]  # fmt: skip


def test_pairs_are_chosen_on_rows_that_are_not_in_the_test(birds: Birds) -> None:
    arms = {"best": {"kind": "best_single_pair"}, "oracle": {"kind": "oracle"}, **READER}
    results = start(birds, settings={"arms": arms, "rows": {"validation": 4}}).results
    assert (results["rows"], results["status"]) == ({"test": 8, "validation": 4}, "complete")
    assert results["matrix"]["best_single_pair"]["pair"] == "Reader@@Reading"
    assert results["baselines"]["best"]["accuracy"] == results["baselines"]["reader"]["accuracy"]


def test_the_interval_of_the_benchmarks_own_average_stands_beside_it_in_terminal_and_report(birds: Birds) -> None:
    results = start(birds, limit=11).results
    entry = results["baselines"]["reader"]
    assert (entry["accuracy"], entry["average"]) == (pytest.approx(7 / 11), pytest.approx((4 / 6 + 3 / 5) / 2))
    assert entry["average_ci95"] == pytest.approx((0.35, 11 / 12))
    head, line = [text.split() for text in printed(results).splitlines() if text.split()[:1] in (["arm"], ["reader"])]
    assert head[:7] == ["arm", "acc.", "95", "%", "len.", "avg.", "95"]
    assert line[:6] == ["reader", "0.636", "0.36-0.91", "1.000", "0.633", "0.35-0.92"]
    page = (birds.run / "report.html").read_text()
    assert '<td>0.633 <span class="range">0.35–0.92</span></td>' in page
    both = write_runs([birds.run], birds.folder / "all.html").read_text()
    assert '<span class="range">average 0.633 (0.35–0.92)</span>' in both
    without = {**results, "baselines": {"reader": {k: v for k, v in entry.items() if k != "average_ci95"}}}
    assert "0.633" in printed(without) and "0.35-0.92" not in printed(without)
