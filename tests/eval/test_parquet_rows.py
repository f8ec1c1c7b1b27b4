"""Rows in verl's parquet format: ours come back, those of others are read, broken ones are named."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eval.benchmarks.parquet import read_parquet, row_from_record, write_parquet
from eval.benchmarks.row import Row
from registry.errors import UserFault


def png(colour: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (64, 48)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, "PNG")
    return buffer.getvalue()


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)))


def row(number: int = 0, **changes: Any) -> Row:
    fields: dict[str, Any] = {
        "id": f"row-{number}",
        "benchmark": "embedded",
        "question": "How many shapes are in the picture?",
        "pictures": (png(),),
        "answer": "3",
        "choices": None,
        "group": "shape_count",
        "split": "train",
        "extra": {"wording": "shapes_1", "shared": True, "caption": "some coloured shapes"},
    }
    return Row(**{**fields, **changes})


def record(images: Any, question: str = "<image>Who?") -> dict[str, Any]:
    return {
        "data_source": "chartqa",
        "prompt": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": f"{question} Plan."},
        ],
        "images": images,
        "ability": "fact-reasoning",
        "reward_model": {"ground_truth": ["Go-Jek"], "style": "rule"},
        "extra_info": {"answer": ["Go-Jek"], "index": 2511, "question": question, "split": "train"},
    }


def write_records(path: Path, records: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(records), path)
    return path


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [
        row(0),
        row(1, choices=("A", "B"), answer="B", extra={}),
        row(2, pictures=(png(), png((0, 0, 9)))),
    ]
    assert write_parquet(rows, tmp_path / "rows.parquet", system_prompt=None) == 3
    for before, after in zip(rows, read_parquet(tmp_path / "rows.parquet"), strict=True):
        assert [pixels(p).tolist() for p in after.pictures] == [pixels(p).tolist() for p in before.pictures]
        assert (after.id, after.question, after.answer, after.choices) == (
            before.id,
            before.question,
            before.answer,
            before.choices,
        )
        assert (after.benchmark, after.group, after.split) == ("embedded", "shape_count", "train")
        assert dict(after.extra) == dict(before.extra)


def test_a_written_record_has_the_columns_of_the_published_training_files(tmp_path: Path) -> None:
    write_parquet([row()], tmp_path / "rows.parquet", system_prompt="Delegate.")
    [found] = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    extra = found["extra_info"].pop("extra")
    assert found.pop("images") == [{"bytes": png(), "path": None}]
    assert found == {
        "data_source": "embedded",
        "prompt": [
            {"role": "system", "content": "Delegate."},
            {"role": "user", "content": "<image>How many shapes are in the picture?"},
        ],
        "ability": "shape_count",
        "reward_model": {"style": "rule", "ground_truth": "3"},
        "extra_info": {
            "index": 0,
            "id": "row-0",
            "question": "How many shapes are in the picture?",
            "answer": "3",
            "split": "train",
            "family": "shape_count",
            "choices": None,
        },
    }
    assert json.loads(extra) == {"wording": "shapes_1", "shared": True, "caption": "some coloured shapes"}


def test_without_a_system_prompt_only_the_user_speaks(tmp_path: Path) -> None:
    write_parquet([row()], tmp_path / "rows.parquet", system_prompt=None)
    [found] = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [message["role"] for message in found["prompt"]] == ["user"]


def test_pictures_are_stored_as_they_are_and_texts_are_packed(tmp_path: Path) -> None:
    write_parquet([row()], tmp_path / "rows.parquet", system_prompt="Delegate.")
    group = pq.ParquetFile(tmp_path / "rows.parquet").metadata.row_group(0)
    columns = {one.path_in_schema: one for one in map(group.column, range(group.num_columns))}
    pictures, prompts = columns["images.list.element.bytes"], columns["prompt.list.element.content"]
    assert (pictures.compression, pictures.has_dictionary_page, pictures.is_stats_set) == ("UNCOMPRESSED", False, False)
    assert (prompts.compression, prompts.has_dictionary_page) == ("SNAPPY", True)


def test_order_and_index_hold_over_several_groups(tmp_path: Path) -> None:
    small = png(size=(32, 32))
    rows = (row(number, pictures=(small,)) for number in range(600))
    assert write_parquet(rows, tmp_path / "many.parquet", system_prompt=None) == 600
    assert [found.id for found in read_parquet(tmp_path / "many.parquet")] == [f"row-{n}" for n in range(600)]
    index = pq.read_table(tmp_path / "many.parquet").column("extra_info").to_pylist()
    assert [entry["index"] for entry in index] == list(range(600))


def test_a_record_of_the_published_files_becomes_a_row(tmp_path: Path) -> None:
    path = write_records(tmp_path / "real.parquet", [record([{"bytes": png(), "path": "data/2511.jpg"}])])
    [found] = read_parquet(path)
    assert (found.id, found.benchmark, found.question) == ("2511", "chartqa", "Who?")
    assert (found.answer, found.group, found.split) == ("Go-Jek", "fact-reasoning", "train")


def test_several_right_answers_are_kept_in_extra(tmp_path: Path) -> None:
    both = record([png()])
    both["reward_model"]["ground_truth"] = ["42", "forty-two"]
    [found] = read_parquet(write_records(tmp_path / "two.parquet", [both]))
    assert found.answer == "42"
    assert found.extra["answers"] == ["42", "forty-two"]


@pytest.mark.parametrize(
    "images",
    [
        {"bytes": png(), "path": None},
        [{"bytes": png(), "path": None}],
        [{"bytes": None, "path": "pictures/a.png"}],
        {"path": "pictures/a.png"},
        "pictures/a.png",
        ["pictures/a.png"],
        png(),
        [png()],
        np.array([{"bytes": png(), "path": None}], dtype=object),
        np.array(["pictures/a.png"], dtype=object),
    ],
    ids=[
        "dict",
        "list",
        "path_only",
        "no_bytes_key",
        "text",
        "texts",
        "bytes",
        "bytes_list",
        "array",
        "text_array",
    ],
)
def test_pictures_are_the_same_in_whatever_shape_they_come(tmp_path: Path, images: Any) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(png())
    found = row_from_record(record(images), 0, roots=(tmp_path,), where="row 0")
    assert [pixels(picture).tolist() for picture in found.pictures] == [pixels(png()).tolist()]


def test_the_first_root_that_holds_a_relative_path_wins(tmp_path: Path) -> None:
    for name, colour in (("one", (1, 2, 3)), ("two", (4, 5, 6))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "b.png").write_bytes(png(colour))
    (tmp_path / "two" / "c.png").write_bytes(png((7, 8, 9)))
    path = write_records(tmp_path / "r.parquet", [record(["b.png"]), record(["c.png"])])
    found = list(read_parquet(path, roots=(tmp_path / "one", tmp_path / "two")))
    assert [pixels(one.pictures[0])[0, 0].tolist() for one in found] == [[1, 2, 3], [7, 8, 9]]


@pytest.mark.parametrize("outside", ["/etc/passwd", "../secret.png", "file:///etc/passwd", "http://10.0.0.1/a.png"])
def test_paths_outside_the_roots_are_refused(tmp_path: Path, outside: str) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    (tmp_path / "data").mkdir()
    path = write_records(tmp_path / "data" / "r.parquet", [record([outside])])
    with pytest.raises(UserFault, match="row 0"):
        list(read_parquet(path))


def test_a_missing_column_or_an_empty_list_is_a_text_question_unless_the_text_wants_an_image(
    tmp_path: Path,
) -> None:
    plain, empty = record([], "Who?"), record([], "Who?")
    del plain["images"]
    assert row_from_record(plain, 0, roots=(), where="row 0").pictures == ()
    assert row_from_record(empty, 0, roots=(), where="row 0").pictures == ()
    with pytest.raises(UserFault, match=r"asks for 1 image\(s\), the row has 0"):
        row_from_record(record([]), 4, roots=(), where="row 4")


def test_an_unknown_shape_of_images_names_the_row() -> None:
    with pytest.raises(UserFault) as caught:
        row_from_record(record([3.5]), 7, roots=(), where="rows.parquet: row 7")
    assert "rows.parquet: row 7" in str(caught.value)


def test_a_row_without_answer_or_question_is_named() -> None:
    nothing = {"prompt": [{"role": "user", "content": "Who?"}], "images": None}
    with pytest.raises(UserFault, match="no answer"):
        row_from_record(nothing, 0, roots=(), where="row 0")
    with pytest.raises(UserFault, match="no question"):
        row_from_record({"reward_model": {"ground_truth": "1"}}, 0, roots=(), where="row 0")


@pytest.mark.parametrize("content", [b"", b"not a parquet file at all", b"PAR1" + b"\0" * 40])
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    with pytest.raises(UserFault) as caught:
        list(read_parquet(path))
    assert "broken.parquet" in str(caught.value)


def test_a_cut_file_and_a_missing_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_parquet([row()], path, system_prompt=None)
    path.write_bytes(path.read_bytes()[:-20])
    for broken in (path, tmp_path / "absent.parquet"):
        with pytest.raises(UserFault, match="cannot read a parquet file"):
            list(read_parquet(broken))


def test_a_broken_picture_ends_reading_at_its_row(tmp_path: Path) -> None:
    records = [record([{"bytes": png(), "path": None}]), record([{"bytes": png()[:30], "path": None}])]
    reader = read_parquet(write_records(tmp_path / "half.parquet", records))
    assert next(reader).answer == "Go-Jek"
    with pytest.raises(UserFault) as caught:
        next(reader)
    assert "half.parquet: row 1" in str(caught.value)


def test_a_stated_share_of_broken_rows_is_skipped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = record([{"bytes": png(), "path": None}]), record([{"bytes": b"", "path": None}])
    path = write_records(tmp_path / "some.parquet", [good, bad, good, bad])
    assert len(list(read_parquet(path, broken_share=0.5))) == 2
    assert "skipped 2 of 4 rows" in caplog.text
    with pytest.raises(UserFault):
        list(read_parquet(path, broken_share=0.25))


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    def rows():
        yield row()
        raise RuntimeError("the generator broke")

    with pytest.raises(RuntimeError):
        write_parquet(rows(), tmp_path / "rows.parquet", system_prompt=None)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_the_users_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserFault, match="cannot write"):
        write_parquet([row()], tmp_path / "file" / "rows.parquet", system_prompt=None)


def test_a_question_with_a_placeholder_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="row-0"):
        write_parquet([row(question="What is <image>?")], tmp_path / "rows.parquet", system_prompt=None)
