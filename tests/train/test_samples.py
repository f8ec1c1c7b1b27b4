"""Which rollouts of a run are shown, and where their pictures come from."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from experts.images import load_picture
from train.samples import pictures_of, sampled, spread, steps_in


def png(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 32), (shade, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def shown(shade: int) -> dict[str, Any]:
    return {"id": "r#0", "pictures": [{"sha256": load_picture(png(shade)).sha256}]}


def test_steps_are_spread_over_the_run_with_its_ends() -> None:
    assert spread(range(1, 81), 5) == [1, 21, 41, 60, 80]
    assert spread([3, 4], 5) == [3, 4]
    assert spread([3, 4, 9], 1) == [9]
    assert spread([], 5) == []


def test_of_a_repeated_step_the_newest_attempt_is_shown_and_broken_lines_are_passed_over(
    record_of, tmp_path: Path
) -> None:
    path = tmp_path / "rollouts"
    t = {"id": "x"}
    lines = [
        record_of(step=1, row="old", trajectory=t), record_of(step=2, row="other", trajectory=t),
        record_of(step=1, attempt=2, row="a", trajectory=t), record_of(step=1, attempt=2, row="none"),
        record_of(step=1, attempt=2, row="b", trajectory=t), record_of(step=1, attempt=2, row="c", trajectory=t),
        record_of(step=1, split="validation", row="v", trajectory=t),
    ]  # fmt: skip
    path.write_text("".join(r.line() for r in lines) + record_of(step=1, attempt=3, trajectory=t).line()[:60])
    found = sampled(path, [("train", 1), ("validation", 1), ("train", 9)], 2)
    assert {place: [r.row for r in records] for place, records in found.items()} == {
        ("train", 1): ["a", "b"], ("validation", 1): ["v"],
    }  # fmt: skip
    assert (steps_in(path, "train"), steps_in(path, "validation")) == ([1, 2], [1])
    assert (sampled(tmp_path / "no", [("train", 1)], 2), steps_in(tmp_path / "no", "train")) == ({}, [])


def test_pictures_come_from_the_rows_that_were_asked_for(record_of, tmp_path: Path) -> None:
    rows = [
        {"images": [{"bytes": png(shade), "path": None}], "extra_info": {"id": f"r{shade}", "index": shade}}
        for shade in range(1, 9)
    ]
    rows.append({"images": [{"bytes": b"no picture", "path": None}], "extra_info": {"id": "broken", "index": 99}})
    path = tmp_path / "train.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
    asked = [record_of(row=f"r{shade}", trajectory=shown(shade)) for shade in (2, 8)]
    asked.append(record_of(row="broken", trajectory=shown(77)))
    found = pictures_of([tmp_path / "gone.parquet", path], asked, known=())
    assert {sha: (picture.width, picture.height) for sha, picture in found.items()} == {
        load_picture(png(shade)).sha256: (40, 32) for shade in (2, 8)
    }
    assert pictures_of([path], asked[:1], known=set(found)) == {}


def test_rows_without_ids_are_found_by_their_index(record_of, tmp_path: Path) -> None:
    rows = [{"images": [{"bytes": png(i), "path": None}], "extra_info": {"index": i}} for i in (1, 2)]
    path = tmp_path / "train.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    [found] = pictures_of([path], [record_of(row="b-train-2", index=2, trajectory=shown(2))], known=())
    assert found == load_picture(png(2)).sha256
