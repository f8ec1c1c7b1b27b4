"""Rows of a benchmark that is read: anew each time, a part set apart, faulty ones counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from made_benchmark import Birds, row

from eval.benchmarks.tally import Tally
from eval.phases import silent
from eval.row_sources import Entry, Source
from eval.rows import Rows
from eval.shard import Shard
from eval.splits import load_rows, load_splits
from orchestrator.task import Task
from registry.errors import UserFault


def entries(*ids: str, opened: list[int] | None = None) -> Source:
    def read(tally: Tally) -> Iterator[Entry]:
        if opened is not None:
            opened.append(0)
        for one in ids:
            if opened is not None:
                opened[-1] += 1
            yield Entry(Task(one, "exact", "", "?", (), "x"), shared=one == "b")

    return Source(read, lambda: None, "rows.jsonl")


def test_every_reading_starts_anew_and_the_first_whole_one_leaves_the_ids() -> None:
    opened: list[int] = []
    rows = Rows("test", entries("a", "b", "c", opened=opened), kept_bytes=-1)
    rows.begin()
    assert not rows.read_through
    assert [entry.task.row_id for entry in rows] == ["a", "b", "c"]
    assert (list(rows.ids), rows.shared, len(rows.tasks), opened) == (["a", "b", "c"], {"b"}, 3, [3])
    assert [task.row_id for task in rows.tasks] == ["a", "b", "c"]
    assert opened == [3, 3]


def test_rows_with_small_pictures_are_read_once() -> None:
    opened: list[int] = []
    rows = Rows("test", entries("a", "b", opened=opened), kept_bytes=0)
    for _ in range(3):
        assert [entry.task.row_id for entry in rows] == ["a", "b"]
    assert ([task.row_id for task in rows.find({"b"})], opened) == (["b"], [2])


def test_looking_for_a_row_reads_no_further_than_that_row() -> None:
    opened: list[int] = []
    rows = Rows("test", entries("a", "b", "c", "d", opened=opened), kept_bytes=-1)
    assert [task.row_id for task in rows.find({"b"})] == ["b"]
    assert opened == [2]
    assert rows.ids and [task.row_id for task in rows.find({"x"})] == []
    assert opened == [2, 4]


def test_an_id_that_comes_again_ends_the_reading_and_is_named() -> None:
    with pytest.raises(UserFault, match="two rows have the id 'b'"):
        list(Rows("test", entries("a", "b", "b")))


def test_a_split_without_rows_is_refused_at_the_start_but_an_empty_shard_is_not() -> None:
    with pytest.raises(UserFault, match="the split 'test' holds no rows"):
        Rows("test", entries()).begin()
    last = Rows("test", entries("a", "b"), shard=Shard(3, 3))
    last.begin()
    assert list(last.ids) == []


def test_a_shard_takes_its_part_of_the_first_rows() -> None:
    rows = Rows("test", entries("a", "b", "c", "d", "e"), wanted=4, shard=Shard(2, 2))
    assert list(rows.ids) == ["b", "d"]


def test_the_number_of_rows_is_known_before_they_are_read(tmp_path: Path) -> None:
    birds = Birds(tmp_path, [row(number) for number in range(20)])
    assert load_rows(birds.config(), "test").expected() == 20
    assert load_rows(birds.config(), "test", limit=7).expected() == 7
    assert load_rows(birds.config(), "test", shard=Shard(3, 3)).expected() == 6
    assert load_rows(birds.config(rows={"validation": 5}), "test").expected() == 15


def test_rows_on_which_pairs_are_chosen_are_set_apart_and_stay_the_same_under_a_limit(tmp_path: Path) -> None:
    birds = Birds(tmp_path, [row(number) for number in range(20)])
    config = birds.config(rows={"validation": 6})
    apart, test = load_rows(config, "validation").ids, load_rows(config, "test").ids
    assert (len(apart), len(test)) == (6, 14)
    assert sorted([*apart, *test]) == [f"birds/{number:02d}" for number in range(20)]
    assert list(load_rows(config, "test", limit=4).ids) == list(test)[:4]
    assert list(load_rows(config, "validation", limit=4).ids) == list(apart)[:4]
    other = birds.config(rows={"validation": 6}, seed=1)
    assert set(load_rows(other, "validation").ids) != set(apart)


def test_an_arm_that_chooses_on_validation_rows_is_refused_without_any(tmp_path: Path) -> None:
    birds = Birds(tmp_path, [row(number) for number in range(4)])
    with pytest.raises(UserFault, match="an arm chooses its pairs on validation rows, and there are none") as caught:
        load_splits(birds.config(arms={"best": {"kind": "best_single_pair"}}), None, silent)
    assert "rows.validation=100" in str(caught.value.fix)


def test_setting_all_rows_apart_is_refused(tmp_path: Path) -> None:
    birds = Birds(tmp_path, [row(number) for number in range(4)])
    with pytest.raises(UserFault, match="4 rows are to be set apart, and the benchmark 'birds' has 4"):
        list(load_rows(birds.config(rows={"validation": 4}), "test"))


def test_rows_that_cannot_be_used_are_left_out_and_counted_by_reason(tmp_path: Path) -> None:
    faulty = [row(20, image=None), row(21, answer=None), row(22, image="gone.png"), row(3)]
    birds = Birds(tmp_path, [*(row(number) for number in range(20)), *faulty])
    rows = load_rows(birds.config(data={"most_faulty": 0.2}), "test")
    assert len(rows.ids) == 20
    assert rows.skipped == {"no image": 1, "no gold answer": 1, "bad image": 1, "duplicate id": 1}


def test_text_only_rows_need_no_picture(tmp_path: Path) -> None:
    birds = Birds(tmp_path, [row(number, image=None) for number in range(3)])
    assert [len(task.pictures) for task in load_rows(birds.config(data={"text_only": True}), "test").tasks] == [0, 0, 0]


def test_a_benchmark_that_is_read_has_no_unseen_wordings(tmp_path: Path) -> None:
    birds = Birds(tmp_path, [row(0)])
    with pytest.raises(UserFault, match="the benchmark 'birds' has no split 'test_unseen'"):
        load_rows(birds.config(rows={"test_unseen": 5}), "test_unseen")
