"""The preflight of rows: columns, pictures, prompt budget and gold answers, by the code that trains on them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from registry.errors import UserFault
from train.config import TrainConfig
from train.preflight.check import NotYet
from train.preflight.rows import _sample, check
from train.preflight.site import Site

Write = Callable[..., str]


def png(number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def row(number: int, **fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "data_source": "chartqa",
        "prompt": [{"role": "user", "content": "<image>How many bars?"}],
        "images": [{"bytes": png(number), "path": None}],
        "ability": "bars",
        "reward_model": {"style": "rule", "ground_truth": "12"},
        "extra_info": {"index": number, "question": "How many bars?", "answer": "12", "split": "train"},
    }
    return usual | fields


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(rows: list[dict[str, Any]], name: str = "rows.parquet", group: int = 4) -> str:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name, row_group_size=group)
        return str(tmp_path / name)

    return _write


def site(file: str, rows: int = 200, **fields: Any) -> Site:
    data = {"train_files": [file], "validation_files": [file]}
    return Site(TrainConfig.model_validate({"data": data, "grpo": {"prompts": 4, "samples": 2}} | fields), rows=rows)


def test_good_rows_are_counted_and_measured_against_the_prompts_budget(write: Write, tiny_policy: Path) -> None:
    file = write([row(n) for n in range(6)])
    assert check(site(file, rows=3, policy=str(tiny_policy))) == (
        "6 training and 6 validation rows, up to 3 of a file looked at"
    )
    with pytest.raises(
        UserFault, match=r"6 of 6 rows looked at cannot be trained on: row 0: \d+ prompt tokens"
    ) as fault:
        check(site(file, policy=str(tiny_policy), protocol={"max_prompt_tokens": 10}))
    assert "protocol.max_prompt_tokens=10" in fault.value.what and fault.value.where == file


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"images": [{"bytes": b"not a picture", "path": None}]}, "row 1: "),
        ({"prompt": [{"role": "user", "content": "How many bars?"}]}, "row 1: 0 <image> in the prompt for 1 pictures"),
        ({"reward_model": {"style": "rule", "ground_truth": None}}, "row 1: no right answer in reward_model"),
        ({"data_source": "nobody"}, "row 1: "),
        (
            {"extra_info": {"index": 1, "question": None, "answer": "12", "split": "train"}},
            "extra_info holds no question",
        ),
        ({"extra_info": {"index": None, "question": "?", "answer": "12", "split": "train"}}, "neither id nor index"),
    ],
)
def test_a_row_that_training_would_lose_is_named(
    write: Write, tmp_path: Path, fields: dict[str, Any], says: str
) -> None:
    file = write([row(0), row(1, **fields), row(2), row(3)])
    with pytest.raises(UserFault, match="1 of 4 rows looked at cannot be trained on") as fault:
        check(site(file, run=str(tmp_path / "run")))
    assert says in fault.value.what


def test_a_file_with_other_columns_is_refused_with_those_that_it_needs(write: Write) -> None:
    file = write([{"question": "How many?", "image": b""}])
    with pytest.raises(UserFault, match="no column data_source, prompt, images, reward_model, extra_info") as fault:
        check(site(file))
    assert "there are question, image" in fault.value.what


def test_a_missing_file_and_one_that_is_no_parquet_are_one_message_each(tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="cannot read the rows"):
        check(site(str(tmp_path / "none.parquet")))
    (tmp_path / "text.parquet").write_text("question,answer\n")
    with pytest.raises(UserFault, match="no readable parquet"):
        check(site(str(tmp_path / "text.parquet")))


def test_fewer_rows_than_a_step_has_prompts_are_refused(write: Write, tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="3 training rows are fewer than the 4 prompts of a step"):
        check(site(write([row(n) for n in range(3)]), run=str(tmp_path / "run")))


def test_training_files_without_validation_files_are_refused(write: Write) -> None:
    file = write([row(n) for n in range(4)])
    with pytest.raises(UserFault, match=r"without data\.validation_files"):
        check(Site(TrainConfig.model_validate({"data": {"train_files": [file]}})))


def test_rows_that_the_run_draws_itself_are_not_looked_for() -> None:
    with pytest.raises(NotYet, match="rows of embedded are drawn when the run starts"):
        check(Site(TrainConfig()))  # type: ignore[call-arg]


def test_a_sample_is_spread_over_the_file_and_holds_each_row_once(write: Write) -> None:
    with pq.ParquetFile(write([row(n) for n in range(10)], group=3)) as file:
        assert [number for number, _ in _sample(file, 4)] == [0, 2, 5, 7]
        assert [found["extra_info"]["index"] for _, found in _sample(file, 4)] == [0, 2, 5, 7]
        assert [number for number, _ in _sample(file, 50)] == list(range(10))
