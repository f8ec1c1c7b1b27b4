"""One shard in a worker: what it must see, what it says, and that it is the ordinary evaluation."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eval.config import load_eval_config
from eval.engines.shared_folder import SharedFolder
from eval.engines.worker import Job, Worker
from eval.journal import Journal
from eval.merge import merge
from eval.shard import Shard
from registry.errors import UserFault
from registry.registry import Registry

CONFIG = """
benchmark: embedded
run: run
rows: {test: 4, validation: 4}
arms:
  keyword: {kind: keyword}
  random: {kind: random_pair}
"""


@pytest.fixture
def job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_two_experts: Callable[[Path], Path]
) -> Callable[..., Job]:
    """A job of the embedded world in the test's folder; the test's own current folder comes back afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = write_two_experts(tmp_path)
    (tmp_path / "eval.yaml").write_text(CONFIG)

    def _job(**changed: object) -> Job:
        fields: dict[str, object] = {
            "config": load_eval_config(tmp_path / "eval.yaml"),
            "registry": (registry.name,),
            "registry_digest": Registry.load(registry).digest,
            "cwd": tmp_path,
            "shared": SharedFolder(tmp_path),
            "limit": None,
            "retry_errors": False,
        }
        return Job(**fields | changed)  # type: ignore[arg-type]

    return _job


def test_a_worker_evaluates_its_shard_from_the_folder_of_the_start(job: Callable[..., Job], tmp_path: Path) -> None:
    told = job()
    os.chdir("/")
    first, second = (Worker(told, Shard(index, 2), tmp_path / f"run-{index}") for index in (1, 2))
    assert (first.run().ran, second.run().ran) == (4, 4)
    assert first.progress()["keyword"] == (2, 2)
    assert first.run().ran == 0
    assert first.look().warnings == ()
    results = merge([tmp_path / "run-1", tmp_path / "run-2"], tmp_path / "run").results
    assert (results["status"], results["trajectories"]) == ("complete", 8)


def test_a_shard_that_goes_on_with_another_version_says_what_the_ordinary_run_says(
    job: Callable[..., Job], tmp_path: Path
) -> None:
    Worker(job(limit=2), Shard(1, 2), tmp_path / "run-1").run()
    file = tmp_path / "run-1" / "eval.json"
    asked = json.loads(file.read_text())
    numpy = asked["versions"]["numpy"]
    file.write_text(json.dumps(asked | {"versions": asked["versions"] | {"numpy": "0.1"}}))
    again = Worker(job(), Shard(1, 2), tmp_path / "run-1")
    assert again.run().ran == 2
    assert again.look().warnings == (f"this run was begun with other versions (then -> now): numpy 0.1 -> {numpy}",)
    assert again.look().phases["keyword"] == (1, 1)


def test_an_earlier_merge_is_replaced_unless_it_holds_more_than_its_shards(
    job: Callable[..., Job], tmp_path: Path
) -> None:
    folders = [tmp_path / "run-1", tmp_path / "run-2"]
    told = job()
    for index, folder in enumerate(folders, 1):
        Worker(told, Shard(index, 2), folder).run()
    merge(folders, tmp_path / "run", anew=True)
    with pytest.raises(UserFault, match="not empty"):
        merge(folders, tmp_path / "run")
    assert merge(folders, tmp_path / "run", anew=True).results["status"] == "complete"
    assert not list(tmp_path.glob(".run-*"))
    journal = folders[0] / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(UserFault, match="1 finished trajectories of the merged folder are in none of its shards"):
        merge(folders, tmp_path / "run", anew=True)
    assert len((tmp_path / "run" / "journal.jsonl").read_bytes().splitlines()) == 8
    with pytest.raises(UserFault, match="was not merged from shards"):
        merge(folders, folders[0], anew=True)


def test_a_node_that_does_not_see_the_folder_is_named(job: Callable[..., Job], tmp_path: Path) -> None:
    shared = SharedFolder(tmp_path)
    shared.remove()
    with pytest.raises(UserFault, match="does not see the run's folder"):
        shared.check(wait_s=0.0)
    other = SharedFolder(tmp_path)
    next(tmp_path.glob(".seen-*")).unlink()
    for file in tmp_path.glob(".seen-*"):
        file.write_text("another secret")
    with pytest.raises(UserFault, match="on a file system that all nodes share"):
        other.check(wait_s=0.0)
    outcome = Worker(job(cwd=tmp_path / "nowhere"), Shard(1, 2), tmp_path / "x").run()
    assert outcome.fault is not None
    assert "does not see the folder in which the evaluation was started" in outcome.fault[0]
    assert not outcome.again
    assert not (tmp_path / "x").exists()


def test_a_folder_that_shows_late_is_waited_for(tmp_path: Path) -> None:
    shared = SharedFolder(tmp_path)
    file = next(tmp_path.glob(".seen-*"))
    secret = file.read_text()
    file.unlink()

    def show(seconds: float) -> None:
        file.write_text(secret)

    shared.check(wait_s=30.0, sleep=show)


def test_another_registry_on_the_node_is_refused(job: Callable[..., Job], tmp_path: Path) -> None:
    outcome = Worker(job(registry_digest="0" * 64), Shard(1, 2), tmp_path / "x").run()
    assert outcome.fault is not None
    assert "reads another registry" in outcome.fault[0]


def test_a_journal_that_a_lost_worker_still_holds_is_worth_another_try(job: Callable[..., Job], tmp_path: Path) -> None:
    worker = Worker(job(), Shard(1, 2), tmp_path / "x")
    with Journal(tmp_path / "x" / "journal.jsonl"):
        outcome = worker.run()
    assert outcome.again
    assert outcome.fault is not None
    assert "another evaluation is writing this journal" in outcome.fault[0]


def test_a_worker_told_to_stop_before_it_runs_runs_nothing(job: Callable[..., Job], tmp_path: Path) -> None:
    worker = Worker(job(), Shard(1, 2), tmp_path / "x")
    worker.stop()
    assert worker.run().fault == ("stopped", None, None)
    assert not (tmp_path / "x").exists()
