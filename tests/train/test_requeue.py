"""Rows that machinery lost: when they come back, how often, and what a resumed run knows of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import collate_fn

from train import requeue
from train.config import TrainConfig
from train.paths import RunPaths
from train.requeue import RowQueue, Waiting, append, read_line, requeued, row_name, verdict
from train.rollout_buffer import PromptBuffer
from train.step_metrics import step_metrics
from train.verl_config import environment


def name(number: int) -> requeue.RowName:
    return ("b", "train", f"r{number}", str(number))


def entry(number: int) -> dict[str, Any]:
    """A row that was lost in step 1, as it stands in the file."""
    return {"row": name(number), "tries": 1, "due": 2}


class Loader:
    """Gives the rows 0, 1, 2, ... in order, as verl's loader does; `step` plays one and says which rows were played."""

    def __init__(self, queue: RowQueue, size: int = 4, start: int = 0) -> None:
        self.queue, self.size, self.next = queue, size, start
        queue.rows.dataset = lambda: DataSet(100)

    def step(self, step: int, lost: tuple[int, ...] = (), broken: tuple[int, ...] = ()) -> list[int]:
        """lost, broken: numbers of the rows whose rollouts machinery lost, or that are broken."""
        fresh = [name(number) for number in range(self.next, self.next + self.size)]
        self.next += self.size
        uids = [f"{step}-{slot}" for slot in range(self.size)]
        played = [int(one[3]) for one in self.queue.take(step, uids, fresh)]
        for uid, number in reversed(list(zip(uids, played, strict=True))):  # groups end in no fixed order
            fault = "machinery" if number in lost else "row" if number in broken else ""
            self.queue.judge(uid, [fault] * 4)
        self.told = self.queue.end_step(step)
        return played


class DataSet:
    """What is used of verl's data set: rows by place, and two columns of all of them."""

    def __init__(self, size: int) -> None:
        self.rows = [
            {"data_source": "b", "extra_info": {"split": "train", "id": f"r{n}", "index": n}} for n in range(size)
        ]
        self.dataframe = SimpleNamespace(select_columns=lambda columns: self.rows)

    def __getitem__(self, place: int) -> dict[str, Any]:
        prompt = [{"role": "user", "content": [{"type": "text", "text": f"question {place}"}]}]
        return {**self.rows[place], "raw_prompt": prompt, "dummy_tensor": torch.tensor([0], dtype=torch.uint8)}


@pytest.mark.parametrize(
    ("faults", "blame"),
    [
        (["", "", "", ""], ""),
        (["", "", "machinery", "machinery"], ""),  # two are enough to be compared
        (["", "machinery", "machinery", "machinery"], "machinery"),
        (["machinery"] * 4, "machinery"),
        ([], "machinery"),  # a rollout raised: verl keeps nothing of the group
        (["row"] * 4, "row"),
        (["row", "row", "machinery", "machinery"], "row"),  # two could not be graded, two did not get so far
    ],
)
def test_a_group_without_two_valid_rollouts_is_lost_and_somebody_is_to_blame(faults: list[str], blame: str) -> None:
    assert verdict(faults) == blame


def test_while_nothing_is_lost_rows_are_played_as_they_come(tmp_path: Path) -> None:
    loader = Loader(RowQueue(tmp_path / "line", 2))
    assert [loader.step(step) for step in (1, 2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert loader.told == {"requeued": 0, "again": 0, "given_up": 0, "broken": 0}


def test_a_lost_row_opens_the_next_step_and_no_other_row_is_skipped_or_met_twice(tmp_path: Path) -> None:
    loader = Loader(RowQueue(tmp_path / "line", 2))
    assert loader.step(1, lost=(1, 2)) == [0, 1, 2, 3]
    assert loader.told == {"requeued": 2, "again": 0, "given_up": 0, "broken": 0}
    assert loader.step(2) == [1, 2, 4, 5]
    assert loader.told == {"requeued": 0, "again": 2, "given_up": 0, "broken": 0}
    assert loader.step(3) == [6, 7, 8, 9]


def test_a_whole_step_that_was_lost_is_played_whole_again(tmp_path: Path) -> None:
    loader = Loader(RowQueue(tmp_path / "line", 2))
    loader.step(1, lost=(0, 1, 2, 3))
    assert [loader.step(step) for step in (2, 3)] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_row_that_is_lost_again_and_again_waits_longer_and_is_given_up(tmp_path: Path) -> None:
    loader = Loader(RowQueue(tmp_path / "line", 3))
    met = {step: loader.step(step, lost=(3,)) for step in range(1, 12)}
    assert [step for step, rows in met.items() if 3 in rows] == [1, 2, 4, 8]  # after 1, 2 and 4 steps
    assert [met[step][0] for step in (2, 4, 8)] == [3, 3, 3]
    assert sorted(row for rows in met.values() for row in rows) == sorted([*range(41), 3, 3, 3])


def test_a_row_that_is_given_up_is_counted(tmp_path: Path) -> None:
    loader = Loader(RowQueue(tmp_path / "line", 1))
    told = [(loader.step(step, lost=(3,)), loader.told)[1] for step in (1, 2, 3)]
    assert told == [
        {"requeued": 1, "again": 0, "given_up": 0, "broken": 0},
        {"requeued": 0, "again": 1, "given_up": 1, "broken": 0},
        {"requeued": 0, "again": 0, "given_up": 0, "broken": 0},
    ]


def test_a_broken_row_does_not_come_back_and_is_counted_apart(tmp_path: Path) -> None:
    loader = Loader(RowQueue(tmp_path / "line", 2))
    loader.step(1, broken=(2,))
    assert loader.told == {"requeued": 0, "again": 0, "given_up": 0, "broken": 1}
    assert loader.step(2) == [4, 5, 6, 7]


def test_a_resumed_run_plays_the_rows_that_the_unbroken_one_plays(tmp_path: Path) -> None:
    lost: dict[int, tuple[int, ...]] = {1: (0, 2), 2: (0,), 3: (), 4: (7, 9), 5: ()}
    whole = Loader(RowQueue(tmp_path / "whole", 2))
    expected = {step: whole.step(step, lost=rows) for step, rows in lost.items()}

    killed = Loader(RowQueue(tmp_path / "line", 2))
    for step in (1, 2, 3):
        killed.step(step, lost=lost[step] + (7,) * (step == 3))  # past the checkpoint other rows are lost
    resumed = Loader(
        RowQueue(tmp_path / "line", 2), start=2 * 4
    )  # the loader's own place is in the checkpoint of step 2
    assert {step: resumed.step(step, lost=lost[step]) for step in (3, 4, 5)} == {s: expected[s] for s in (3, 4, 5)}
    again = Loader(RowQueue(tmp_path / "line", 2), start=4 * 4)
    assert again.step(5) == expected[5]


def test_a_run_that_begins_from_anothers_checkpoint_takes_its_line_along(tmp_path: Path) -> None:
    other = Loader(RowQueue(tmp_path / "other", 2))
    other.step(1, lost=(1,))
    begun = Loader(RowQueue(tmp_path / "line", 2, before=tmp_path / "other"), start=4)
    assert begun.step(2) == [1, 4, 5, 6]
    assert read_line(tmp_path / "line", 2) == [Waiting(name(7))]


def test_rows_that_the_run_no_longer_has_are_left_out_of_the_line(tmp_path: Path) -> None:
    append(tmp_path / "line", {"step": 1, "line": [entry(400), entry(3)]})
    assert Loader(RowQueue(tmp_path / "line", 2), start=4).step(2) == [3, 4, 5, 6]


def test_half_a_line_of_a_killed_run_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "line"
    append(file, {"step": 1, "line": [entry(3)]})
    file.write_bytes(file.read_bytes() + b'{"step": 2, "li')
    append(file, {"step": 3, "line": []})
    assert [read_line(file, step) for step in (1, 2, 3)] == [[Waiting(name(3), 1, 2)], [], []]
    assert json.loads(file.read_text().splitlines()[-1]) == {"step": 3, "line": []}


def batch_of(numbers: range, step: int) -> Any:
    """A step's batch as verl's trainer hands it to the manager."""
    data = DataSet(20)
    uids = np.array([f"u{number}" for number in numbers], dtype=object)
    batch: dict[str, Any] = {**collate_fn([data[number] for number in numbers]), "uid": uids}
    made = tu.get_tensordict(batch)
    tu.assign_non_tensor_data(made, "global_steps", step)
    return made


def test_verls_batch_holds_the_lost_row_under_the_group_of_the_row_that_waits(tmp_path: Path) -> None:
    queue = RowQueue(tmp_path / "line", 2)
    queue.rows.dataset = lambda: DataSet(20)
    first = batch_of(range(4), 1)
    assert requeued(first, queue) is first
    queue.judge("u2", ["machinery"] * 4)
    queue.end_step(1)
    made = requeued(batch_of(range(4, 8), 2), queue)
    assert list(made["uid"]) == ["u4", "u5", "u6", "u7"]
    assert [extra["index"] for extra in made["extra_info"]] == [2, 4, 5, 6]
    assert [prompt[0]["content"][0]["text"][-1] for prompt in made["raw_prompt"]] == ["2", "4", "5", "6"]
    assert (made["global_steps"], tuple(made["dummy_tensor"].shape), made.batch_size) == (2, (4, 1), torch.Size([4]))
    assert [len(part) for part in made.chunk(2)] == [2, 2]  # as the manager deals it out
    assert set(made.keys()) == set(first.keys())


def test_rows_of_a_validation_are_left_alone(tmp_path: Path) -> None:
    queue = RowQueue(tmp_path / "line", 2)
    queue.rows.dataset = lambda: DataSet(20)
    requeued(batch_of(range(4), 1), queue)
    queue.judge("u0", [])
    queue.end_step(1)
    validation = batch_of(range(10, 14), 1)
    tu.assign_non_tensor_data(validation, "validate", True)
    assert requeued(validation, queue) is validation


class Trainer:
    """verl's trainer as the buffer sees it."""

    train_dataset = DataSet(20)

    def add_prompts(self, count: int) -> None: ...


@pytest.fixture
def buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for key, value in requeue.environment(2, tmp_path / "requeue.jsonl", None).items():
        monkeypatch.setenv(key, value)
    requeue.queue_of_run.cache_clear()
    yield PromptBuffer(
        trainer_mode="sync", trainer_config={}, max_off_policy_threshold=8, max_off_policy_strategy="drop",
        sampler_kwargs={}, refill_fn=Trainer().add_prompts,
    )  # fmt: skip
    requeue.queue_of_run.cache_clear()


def test_a_step_in_verls_buffer_puts_its_lost_group_at_the_head_of_the_next(
    buffer: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored = {
        f"u{group}_{sample}_0": {"fault": "machinery" if group == 1 else ""} for group in (0, 1, 2) for sample in (0, 1)
    }
    tags = {**{f"u{g}": {"is_prompt": True, "status": "finished", "global_steps": 1} for g in (0, 1, 2, 3)}, **stored}
    monkeypatch.setattr("transfer_queue.kv_list", lambda *_: {"train": tags})
    monkeypatch.setattr("transfer_queue.kv_clear", lambda **_: None)
    queue = requeue.queue_of_run()
    assert queue is not None
    requeued(batch_of(range(4), 1), queue)
    _, metrics = buffer.sample(global_steps=1, partition_id="train", batch_size=4)
    assert metrics == {
        "training/rows/requeued": 2, "training/rows/again": 0, "training/rows/given_up": 0, "training/rows/broken": 0,
    }  # fmt: skip
    made = requeued(batch_of(range(4, 8), 2), queue)
    assert [extra["index"] for extra in made["extra_info"]] == [1, 3, 4, 5]  # of u3 verl kept nothing
    assert read_line(tmp_path / "requeue.jsonl", 1) == [Waiting(name(1), 1, 2), Waiting(name(3), 1, 2)]


def test_the_counts_of_a_step_stand_in_its_record() -> None:
    told = {"requeued": 2.0, "again": 1.0, "given_up": 3.0, "broken": 4.0}
    record = step_metrics(7, [], {f"training/rows/{key}": value for key, value in told.items()})
    assert {key: record[key] for key in record if key.startswith("rows_")} == {
        "rows_requeued": 2.0, "rows_again": 1.0, "rows_given_up": 3.0, "rows_broken": 4.0,
    }  # fmt: skip


def test_the_config_says_how_often_a_row_comes_back() -> None:
    paths = RunPaths.at(Path("/runs/a"))
    env = environment(TrainConfig.model_validate({"grpo": {"requeue": 5}}), paths, 1)
    assert (env["MAESTRO_REQUEUE"], env["MAESTRO_REQUEUE_FILE"]) == ("5", "/runs/a/requeue.jsonl")
    assert "MAESTRO_REQUEUE" not in environment(TrainConfig.model_validate({"grpo": {"requeue": 0}}), paths, 1)


def test_without_requeuing_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert requeue.environment(0, tmp_path / "line", None) == {}
    requeue.queue_of_run.cache_clear()
    monkeypatch.delenv("MAESTRO_REQUEUE", raising=False)
    assert requeue.queue_of_run() is None
    requeue.queue_of_run.cache_clear()


def test_the_line_of_another_run_lies_beside_its_checkpoints() -> None:
    settings = requeue.environment(3, Path("/runs/b/requeue.jsonl"), Path("/runs/a/checkpoints/global_step_20"))
    assert settings == {
        "MAESTRO_REQUEUE": "3", "MAESTRO_REQUEUE_FILE": "/runs/b/requeue.jsonl",
        "MAESTRO_REQUEUE_BEFORE": "/runs/a/requeue.jsonl",
    }  # fmt: skip


def test_names_of_rows_do_not_depend_on_where_they_are_read() -> None:
    assert row_name(DataSet(3)[2]) == row_name(DataSet(3).rows[2]) == ("b", "train", "r2", "2")
