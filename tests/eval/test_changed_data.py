"""A run that goes on over other data, or with another version: the first is refused, the second is said."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from made_benchmark import READER, Birds, row, stop_after

from eval.row_digest import row_digest
from eval.run import Evaluation, evaluate
from eval.shard import Shard
from maestro.cli.app import run
from orchestrator.task import Task
from registry.errors import UserFault
from registry.registry import Registry

TASK = Task("a", "exact", "", "How many?", (), "7", ("6", "7"))


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Birds:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Birds(tmp_path, [row(number) for number in range(12)])


def start(birds: Birds, *, settings: dict[str, Any] | None = None, **options: Any) -> Evaluation:
    registry = Registry.load(birds.folder / "registry.yaml")
    return asyncio.run(evaluate(birds.config(**(settings or {})), registry, birds.run, **options))


def lines(birds: Birds) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (birds.run / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "other",
    [
        Task("b", "exact", "", "How many?", (), "7", ("6", "7")),
        Task("a", "exact", "", "How many birds?", (), "7", ("6", "7")),
        Task("a", "exact", "", "How many?", (), "8", ("6", "7")),
        Task("a", "exact", "", "How many?", (), ("7", "8"), ("6", "7")),
        Task("a", "exact", "", "How many?", (), "7", ("6", "8")),
        Task("a", "exact", "", "How many?", (), "7"),
    ],
)
def test_id_question_options_and_right_answers_are_in_a_rows_digest(other: Task) -> None:
    assert row_digest(TASK) == "2cba8237a435505d"
    assert row_digest(other) != row_digest(TASK)


@pytest.mark.parametrize("change", [{"answer": "1235"}, {"question": "say 1234 now"}])
def test_a_run_is_not_gone_on_with_over_a_changed_row_and_the_first_is_named(
    birds: Birds, change: dict[str, str]
) -> None:
    stopped, display = stop_after(5, "reader")
    with pytest.raises(stopped):
        start(birds, start_phase=display)
    before = lines(birds)
    birds.write([row(n, **(change if n in (3, 4) else {})) for n in range(12)])
    with pytest.raises(UserFault, match="the data has changed since this run was started: row 'birds/03'") as caught:
        start(birds)
    assert "put the data back to go on, or start afresh in another folder with --run" in str(caught.value.fix)
    assert lines(birds) == before
    birds.write([row(number) for number in range(12)])
    assert start(birds).ran == 12 - len(before)


def test_a_finished_run_tells_it_too(birds: Birds) -> None:
    start(birds)
    birds.write([row(n, **({"answer": "1235"} if n == 11 else {})) for n in range(12)])
    with pytest.raises(UserFault, match="row 'birds/11'"):
        start(birds)


def test_rows_that_have_not_run_may_change(birds: Birds) -> None:
    start(birds, limit=4)
    birds.write([row(n, **({"answer": "1235"} if n == 7 else {})) for n in range(12)])
    assert start(birds).ran == 8


def test_a_journal_without_digests_goes_on(birds: Birds) -> None:
    start(birds, limit=4)
    journal = birds.run / "journal.jsonl"
    kept = [{key: value for key, value in line.items() if key != "row_digest"} for line in lines(birds)]
    journal.write_text("".join(json.dumps(line) + "\n" for line in kept))
    birds.write([row(n, **({"answer": "1235"} if n == 2 else {})) for n in range(12)])
    assert start(birds).ran == 8


def test_changed_validation_rows_are_told(birds: Birds) -> None:
    settings = {"arms": {"best": {"kind": "best_single_pair"}, **READER}, "rows": {"validation": 4}}
    start(birds, settings=settings, limit=2)
    assert "rows_digest" in json.loads((birds.run / "matrix.json").read_text())
    tested = {line["trajectory"]["row_id"] for line in lines(birds)}
    changed = {n for n in range(12) if f"birds/{n:02d}" not in tested}
    birds.write([row(n, **({"answer": "1235"} if n in changed else {})) for n in range(12)])
    with pytest.raises(UserFault, match="the validation rows are not those that were measured"):
        start(birds, settings=settings, limit=2)


def test_a_shard_is_told_of_its_own_rows(birds: Birds) -> None:
    start(birds, shard=Shard(2, 2))
    birds.write([row(n, **({"answer": "1235"} if n in (0, 5) else {})) for n in range(12)])
    with pytest.raises(UserFault, match="row 'birds/05'"):
        start(birds, shard=Shard(2, 2))


def test_another_version_of_the_rules_is_said_in_one_line_and_the_run_goes_on(birds: Birds) -> None:
    said: list[str] = []
    start(birds, limit=2, warn=said.append)
    start(birds, limit=4, warn=said.append)
    assert said == []
    asked = json.loads((birds.run / "eval.json").read_text())
    now = asked["versions"]["rules"]
    asked["versions"] |= {"rules": "0123456789ab", "numpy": "0.1"}
    numpy = json.loads((birds.run / "results.json").read_text())["versions"]["numpy"]
    (birds.run / "eval.json").write_text(json.dumps(asked))
    assert start(birds, warn=said.append).ran == 8
    assert said == [
        f"this run was begun with other versions (then -> now): numpy 0.1 -> {numpy}, rules 0123456789ab -> {now}"
    ]


def test_data_root_is_an_option_of_evaluate_and_of_a_study(birds: Birds, capsys: pytest.CaptureFixture[str]) -> None:
    arms = (
        "arms: {reader: {kind: single_expert, expert: Reader, skill: Reading}}\nconcurrency: 1\nexpert_concurrency: 1\n"
    )
    config = birds.folder / "eval.yaml"
    config.write_text(f"benchmark: {birds.folder}/birds.yaml\nrun: {birds.run}\n{arms}")
    words = ["--data-root", str(birds.folder / "data"), "--json"]
    assert run(["evaluate", str(config), "--registry", str(birds.folder / "registry.yaml"), *words]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"test": 12}
    study = birds.folder / "study.yaml"
    member = "members: {one: {arms: {reader: {kind: single_expert, expert: Reader, skill: Reading}}}}\n"
    study.write_text(f"title: x\nfolder: {birds.folder}/out\nbase: eval.yaml\nregistry: [registry.yaml]\n{member}")
    assert run(["evaluate", "study", str(study), *words]) == 0
    [line] = json.loads(capsys.readouterr().out)["lines"]
    assert (line["n"], line["accuracy"], line["lenient"], line["lenient_differ"]) == (12, 8 / 12, 1.0, 4)
    table = (birds.folder / "out" / "study.md").read_text().splitlines()
    assert table[2].startswith("| member | arm | accuracy | 95 % | lenient | greedy | n |")
    assert "| one | reader | 0.667 |" in table[4] and "| 1.000 |" in table[4]
