"""Shards: which rows they take, and how they come together again."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.config import load_eval_config
from eval.merge import merge
from eval.run import Evaluation, evaluate
from eval.shard import Shard, parse_shard
from registry.errors import UserFault
from registry.registry import Registry

CONFIG = """
benchmark: embedded
run: {run}
rows: {{test: 7, test_unseen: 2, validation: 12}}
arms:
  random: {{kind: random_pair}}
  keyword: {{kind: keyword}}
  best_single_pair: {{kind: best_single_pair}}
  oracle: {{kind: oracle}}
samples: 2
pass_at: [1, 2]
report: {{compare_to: keyword}}
"""
TIMES = ("latency_s", "policy_s", "expert_s")


class World:
    """An evaluation of the embedded world with doubles of its experts: once as a whole, once in three shards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "eval.yaml").write_text(CONFIG.format(run=folder / "run"))

    def run(self, folder: Path, shard: str | None = None, *overrides: str) -> Evaluation:
        config = load_eval_config(self.folder / "eval.yaml", overrides)
        registry = Registry.load(self.folder / "registry.yaml")
        part = None if shard is None else parse_shard(shard)
        return asyncio.run(evaluate(config, registry, folder, shard=part))

    def parts(self, to: Path) -> list[Path]:
        """Copies of the three shards."""
        return [Path(shutil.copytree(self.folder / f"part{index}", to / f"part{index}")) for index in (1, 2, 3)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, write_two_experts: Callable[[Path], Path]) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("shards")
    write_two_experts(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        made = World(folder)
        made.run(folder / "straight")
        for index in (1, 2, 3):
            made.run(folder / f"part{index}", f"{index}/3")
        yield made


def change(folder: Path, name: str, **values: Any) -> None:
    """Change values of a JSON file of a run."""
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(("text", "shard"), [("1/1", Shard(1, 1)), (" 2 / 4 ", Shard(2, 4))])
def test_a_shard_is_written_as_part_of_parts(text: str, shard: Shard) -> None:
    assert parse_shard(text) == shard


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "-1/4", "1/4/4", "a/b", "", "1/99999"])
def test_a_part_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(UserFault, match="not a shard"):
        parse_shard(text)


def test_every_nth_row_is_taken_and_the_parts_are_the_whole() -> None:
    parts = [list(Shard(index, 3).take(range(8))) for index in (1, 2, 3)]
    assert parts == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert [Shard(2, 3).holds(position) for position in range(4)] == [False, True, False, False]


def test_merged_shards_score_byte_for_byte_like_one_run(world: World, tmp_path: Path) -> None:
    merged = merge(list(reversed(world.parts(tmp_path))), tmp_path / "merged")
    scores = (world.folder / "straight" / "scores.jsonl").read_bytes()
    assert (tmp_path / "merged" / "scores.jsonl").read_bytes() == scores
    assert len(scores.splitlines()) == (7 + 2) * (2 + 1 + 1 + 1)
    straight = json.loads((world.folder / "straight" / "results.json").read_text())
    assert without_times(merged.results) == without_times(straight)
    assert merged.results["status"] == "complete"
    assert (tmp_path / "merged" / "report.html").stat().st_size > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merged", "part1", "part2", "part3"]


def test_what_a_shard_left_undone_runs_in_the_merged_folder(world: World, tmp_path: Path) -> None:
    parts = world.parts(tmp_path)
    journal = parts[1] / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-3]))
    assert merge(parts, tmp_path / "merged").results["status"] == "incomplete"
    rest = world.run(tmp_path / "merged")
    assert (rest.ran, rest.results["status"]) == (3, "complete")
    straight = (world.folder / "straight" / "scores.jsonl").read_bytes()
    assert (tmp_path / "merged" / "scores.jsonl").read_bytes() == straight


def test_missing_and_doubled_shards_are_named(world: World, tmp_path: Path) -> None:
    first, second, third = world.parts(tmp_path)
    with pytest.raises(UserFault, match="missing: shard 1/3, 3/3"):
        merge([second], tmp_path / "merged")
    shutil.copytree(first, tmp_path / "again")
    with pytest.raises(UserFault, match="shard 1/3 is given twice"):
        merge([first, second, third, tmp_path / "again"], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_shards_of_other_settings_are_refused_with_the_difference(world: World, tmp_path: Path) -> None:
    parts = world.parts(tmp_path)
    settings = json.loads((parts[1] / "identity.json").read_text())["settings"]
    change(parts[1], "identity.json", settings=settings | {"seed": 5})
    with pytest.raises(UserFault, match=r"settings\.seed: 0 -> 5"):
        merge(parts, tmp_path / "merged")
    change(parts[1], "identity.json", settings=settings)
    change(parts[1], "eval.json", limit=3)
    with pytest.raises(UserFault, match="--limit: null -> 3"):
        merge(parts, tmp_path / "merged")
    change(parts[1], "eval.json", limit=None, shard="2/4")
    change(parts[1], "identity.json", shard="2/4")
    with pytest.raises(UserFault, match="parts: 3 -> 4"):
        merge(parts, tmp_path / "merged")


def test_rows_that_belong_to_another_shard_are_refused(world: World, tmp_path: Path) -> None:
    parts = world.parts(tmp_path)
    lines = (parts[0] / "journal.jsonl").read_bytes().splitlines(keepends=True)
    with (parts[1] / "journal.jsonl").open("ab") as file:
        file.write(lines[0])
    with pytest.raises(UserFault, match=r"shard 2/3 holds the row '.*', which belongs to shard 1/3"):
        merge(parts, tmp_path / "merged")
    assert not list(tmp_path.glob(".merged*"))


def test_a_whole_run_is_no_shard_and_a_full_folder_no_place_to_merge_into(world: World, tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="this run is no shard"):
        merge([world.folder / "straight"], tmp_path / "merged")
    with pytest.raises(UserFault, match="not empty"):
        merge(world.parts(tmp_path), world.folder / "straight")
    with pytest.raises(UserFault, match="no shard is given"):
        merge([], tmp_path / "merged")


def test_a_folder_belongs_to_one_shard(world: World) -> None:
    with pytest.raises(UserFault, match='shard: "1/3" -> "2/3"'):
        world.run(world.folder / "part1", "2/3")


def test_more_shards_than_rows_leave_some_without_any(world: World) -> None:
    # Of two rows under wordings never seen, the third shard has none.
    results = json.loads((world.folder / "part3" / "results.json").read_text())
    assert (results["rows"]["test_unseen"], results["rows"]["test"], results["status"]) == (0, 2, "complete")


def without_times(value: Any) -> Any:
    """The results without what a clock measured."""
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in (*TIMES, "seconds")}
    return value
