"""Scoring saved trajectories again: what changes, and that nothing else does."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eval.journal import Journal
from eval.replay import replay
from maestro.cli.app import app, run
from registry.errors import UserFault


def score(value: float, answer: str | None) -> dict[str, Any]:
    return {"value": value, "answer": answer, "explanation": "as it was"}


@pytest.fixture
def folder(tmp_path: Path, make_trajectory) -> Path:
    """Four answers to a count of 7, scored as text by an earlier rule; the fourth episode broke off."""
    with Journal(tmp_path / "journal.jsonl") as journal:
        for row, answer, value in (("a", "7", 1.0), ("b", "seven", 0.0), ("c", "8", 1.0), ("d", None, None)):
            trajectory = make_trajectory(row, answer=answer, gold="7", valid=value is not None) | {
                "benchmark": "integer"
            }
            given = None if value is None else score(value, answer)
            journal.append(arm="after", split="test", score=given, trajectory=trajectory)
    return tmp_path


def test_changed_scores_are_told_row_by_row_with_the_reason(folder: Path) -> None:
    found = replay(folder)
    assert [(change.row, change.before, change.after) for change in found.changes] == [("b", 0.0, 1.0), ("c", 1.0, 0.0)]
    up, down = found.changes
    assert (up.answer, up.gold, up.read_before, up.read_after) == ("seven", "7", "seven", "7")
    assert up.why == "expected 7, read 7: equal exactly"
    assert down.why == "expected 7, read 8: not equal exactly"
    totals = found.arms["test"]["after"]
    assert (totals.scored, totals.errors, totals.unscored, totals.up, totals.down) == (3, 1, 0, 1, 1)
    assert (totals.before, totals.after) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_the_journal_is_left_as_it_is_and_the_outcome_lies_beside_it(folder: Path) -> None:
    journal = (folder / "journal.jsonl").read_bytes()
    found = replay(folder)
    assert (folder / "journal.jsonl").read_bytes() == journal
    written = json.loads((folder / "replay.json").read_text())
    assert written == json.loads(json.dumps(found.to_json()))
    assert written["changes"][0]["row"] == "b"


def test_another_rule_can_be_asked_for(folder: Path) -> None:
    found = replay(folder, scorer="exact")
    assert [(change.row, change.after) for change in found.changes] == [("b", 1.0), ("c", 0.0)]
    with pytest.raises(UserFault, match="unknown rule 'exakt'\n  where: --scorer\n  fix: did you mean 'exact'"):
        replay(folder, scorer="exakt")
    with pytest.raises(UserFault, match=r"fix: known are .*chartqa, "):
        replay(folder, scorer="zzzzzzzz': x")
    with pytest.raises(UserFault, match="two rules at once"):
        replay(folder, scorer="exact", lenient=True)


def test_the_lenient_rule_takes_what_the_official_one_misses_for_its_spelling(tmp_path: Path, make_trajectory) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        for row, answer in (("a", "1,234"), ("b", "1200"), ("c", "99")):
            trajectory = make_trajectory(row, answer=answer, gold="1234") | {"benchmark": "chartqa"}
            journal.append(arm="after", split="test", score=score(0.0, answer), trajectory=trajectory)
    assert {change.row: change.after for change in replay(tmp_path, lenient=True).changes} == {"a": 1.0, "b": 1.0}
    official = replay(tmp_path, scorer="chartqa_official").changes
    assert {change.row: change.after for change in official} == {"b": 1.0}


def test_a_benchmark_without_a_lenient_rule_is_refused(tmp_path: Path, make_trajectory) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(arm="after", split="test", score=score(1.0, "42"), trajectory=make_trajectory("a"))
    with pytest.raises(UserFault, match="benchmark 'embedded' has no lenient rule"):
        replay(tmp_path, lenient=True)
    assert not (tmp_path / "replay.json").exists()


def test_rows_that_a_rule_cannot_score_are_counted_and_named(folder: Path) -> None:
    found = replay(folder, scorer="choice")
    assert found.arms["test"]["after"].unscored == 3
    assert "names none of the options" in found.unscored["a"]
    assert found.changes == []


def test_choices_and_several_right_answers_survive_the_record(tmp_path: Path, make_trajectory) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        asked = make_trajectory("a", answer="(B)", gold="B") | {"benchmark": "choice", "choices": ["red", "blue"]}
        journal.append(arm="after", split="test", score=score(0.0, None), trajectory=asked)
        open_ended = make_trajectory("b", answer="cat") | {"benchmark": "exact", "ground_truth": ["dog", "cat"]}
        journal.append(arm="after", split="test", score=score(0.0, None), trajectory=open_ended)
    assert [change.after for change in replay(tmp_path).changes] == [1.0, 1.0]


def test_no_network_is_touched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert len(replay(folder).changes) == 2


def test_replay_on_the_command_line(folder: Path) -> None:
    done = CliRunner().invoke(app, ["evaluate", "replay", str(folder)], catch_exceptions=False)
    assert "2 of 4 scores change" in done.stdout
    assert "after b #0: 0 -> 1  expected 7, read 7: equal exactly" in done.stdout
    done = CliRunner().invoke(app, ["evaluate", "replay", str(folder), "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["arms"]["test"]["after"]["up"] == 1


def test_a_folder_without_a_journal_is_the_users_fault(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "replay", str(tmp_path)]) == 2
    assert "this folder holds no evaluation (no journal.jsonl)" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_not_there_is_told_with_the_nearest_names(folder: Path, tmp_path: Path) -> None:
    run_folder = tmp_path / "runs" / "demo"
    run_folder.mkdir(parents=True)
    (folder / "journal.jsonl").rename(run_folder / "journal.jsonl")
    with pytest.raises(UserFault, match=f"no such run\n  where: .*demoo\n  fix: did you mean {run_folder}\\?"):
        replay(run_folder.with_name("demoo"))
    with pytest.raises(UserFault, match=f"fix: runs there: {run_folder}"):
        replay(run_folder.with_name("chartqa"))
    with pytest.raises(UserFault, match=f"fix: runs in it: {run_folder}"):
        replay(run_folder.parent)
    with pytest.raises(UserFault, match=f"a file, not the folder.*\n.*\n  fix: give its folder: {run_folder}"):
        replay(run_folder / "journal.jsonl")
    with pytest.raises(UserFault, match="no such run"):
        replay(tmp_path / "nowhere" / "x")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "nothing has run yet: the journal is empty"),
        ('{"loss": 1}\n{"loss": 2}\n', "no line of this file is a trajectory"),
        ("not JSON at all", "no line of this file is a trajectory"),
    ],
)
def test_a_journal_without_a_trajectory_is_the_users_fault(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "journal.jsonl").write_text(content)
    with pytest.raises(UserFault, match=says):
        replay(tmp_path)
    assert not (tmp_path / "replay.json").exists()


def test_a_trajectory_without_its_benchmark_is_named_by_its_row(tmp_path: Path, make_trajectory) -> None:
    trajectory = make_trajectory("a")
    del trajectory["benchmark"]
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(arm="after", split="test", score=score(1.0, "42"), trajectory=trajectory)
    with pytest.raises(UserFault, match="'benchmark' is missing or wrong\n  where: row a"):
        replay(tmp_path)
