"""Shards that were answered over different data: none is merged with another."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from made_benchmark import READER, Birds, row

from eval.merge import merge
from eval.run import evaluate
from eval.shard import Shard
from maestro.cli.app import run
from registry.errors import UserFault
from registry.registry import Registry

ROWS = [row(number) for number in range(12)]


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Birds:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Birds(tmp_path, ROWS)


def shard(birds: Birds, index: int, *, settings: dict[str, Any] | None = None) -> Path:
    folder = birds.folder / f"part{index}"
    registry = Registry.load(birds.folder / "registry.yaml")
    asyncio.run(evaluate(birds.config(**(settings or {})), registry, folder, shard=Shard(index, 2)))
    return folder


def changed(*numbers: int) -> list[dict[str, Any]]:
    return [row(n, **({"answer": "1235"} if n in numbers else {})) for n in range(12)]


def test_shards_of_two_states_of_the_data_are_refused_with_row_shard_and_what_to_do(
    birds: Birds, capsys: pytest.CaptureFixture[str]
) -> None:
    first = shard(birds, 1)
    birds.write(changed(3, 4))
    second = shard(birds, 2)
    out = birds.folder / "merged"
    assert run(["evaluate", "merge", str(first), str(second), "--out", str(out)]) == 2
    assert capsys.readouterr().err.strip().splitlines()[-3:] == [
        "error: shard 1/2 was answered over other data than there is now: row 'birds/04' had another question, other"
        " options or another right answer; shard 2/2 was answered over the data as it is now",
        f"  where: {first / 'journal.jsonl'}",
        "  fix: put the data back under which every shard was run, or run shard 1/2 again in a new folder on the data"
        " as it is now",
    ]
    assert not out.exists() and not list(birds.folder.glob(".merged*"))
    birds.write(ROWS)
    with pytest.raises(UserFault, match=r"shard 2/2 was answered over other data than there is now: row 'birds/03'"):
        merge([first, second], out)


def test_data_that_changed_after_both_shards_is_told_of_both(birds: Birds) -> None:
    parts = [shard(birds, 1), shard(birds, 2)]
    birds.write(changed(3, 4))
    with pytest.raises(
        UserFault, match=r"shard 1/2, 2/2 was answered over other data than there is now: row 'birds/04'"
    ):
        merge(parts, birds.folder / "merged")
    birds.write(ROWS)
    assert merge(parts, birds.folder / "merged").results["status"] == "complete"


def test_one_row_in_two_shards_under_two_questions_is_refused(birds: Birds) -> None:
    first = shard(birds, 1)
    birds.write([row(12), *ROWS])
    second = shard(birds, 2)
    with pytest.raises(UserFault, match=r"shard 1/2 holds the row 'birds/00', which belongs to shard 2/2"):
        merge([first, second], birds.folder / "merged")


def test_pairs_chosen_on_different_validation_rows_are_refused(birds: Birds) -> None:
    settings = {"arms": {"best": {"kind": "best_single_pair"}, **READER}, "rows": {"validation": 4}}
    first = shard(birds, 1, settings=settings)
    tested = {json.loads(line)["trajectory"]["row_id"] for line in (first / "journal.jsonl").read_text().splitlines()}
    birds.write(changed(*(n for n in range(12) if f"birds/{n:02d}" not in tested)))
    second = shard(birds, 2, settings=settings)
    with pytest.raises(UserFault, match="shards 1/2 and 2/2 chose their pairs on different validation rows") as caught:
        merge([first, second], birds.folder / "merged")
    assert caught.value.where == f"{first / 'matrix.json'}, {second / 'matrix.json'}"
    assert caught.value.fix == "run the shards again on the same data, each in a new folder"


def test_shards_without_digests_are_merged_as_before(birds: Birds) -> None:
    parts = [shard(birds, 1), shard(birds, 2)]
    for part in parts:
        lines = [json.loads(line) for line in (part / "journal.jsonl").read_text().splitlines()]
        kept = [{key: value for key, value in line.items() if key != "row_digest"} for line in lines]
        (part / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    birds.write(changed(3))
    assert merge(parts, birds.folder / "merged").results["trajectories"] == 12
