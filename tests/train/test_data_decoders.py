"""Many decoders at once: the same mixture as with one, and every planted copy in it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from eval.yaml_config import load_config
from maestro.cli.data_sources import specs_of
from tests.train.made_mixture import encoded, make_mixture, photo, rows_of, write_rows
from train.data.config import DataConfig
from train.data.looks import distances
from train.data.prepare import Inputs, prepare
from train.data.workspace import Workspace


class Silent:
    def phase(self, name: str, done: int) -> None: ...

    def advance(self, rows: int) -> None: ...


def prepared(file: Path, out: Path, decoders: int) -> tuple[Any, list[dict[str, str]]]:
    """The chosen rows with their pictures, and the leaks."""
    config = load_config(DataConfig, file)
    data = file.parent / "data"
    sources, benchmarks = specs_of(config, file.parent, data, data).readers(10.0)
    work = Workspace(out, "made")
    try:
        mixture = prepare(config, Inputs(sources, benchmarks, None), work, Silent(), decoders=decoders)
        return [list(mixture.rows(work, split)) for split in ("train", "validation")], mixture.leaks
    finally:
        work.close()


def test_with_one_decoder_and_with_five_the_rows_their_order_and_the_leaks_are_the_same(tmp_path: Path) -> None:
    file = make_mixture(tmp_path / "m", sources={"tallyqa": {"benchmark": "tallyqa.yaml", "rows": 26}})
    copies = {
        100: encoded(photo(100)),
        101: encoded(photo(101).resize((60, 40))),
        102: encoded(photo(102), quality=30),
        103: encoded(Image.open(io.BytesIO(encoded(photo(103)))), "WEBP", lossless=True),
    }
    rows = rows_of(range(100, 104), lambda i: f"Anything {i}?")
    write_rows(file.parent / "data/ocrbench", [(row, copies[row["id"]]) for row, _ in rows])
    one, five = (prepared(file, tmp_path / str(count), count) for count in (1, 5))
    assert one == five
    assert {leak["row"].rpartition("/")[2]: leak["kind"] for leak in one[1]} == {
        "100": "same picture", "101": "picture alike", "102": "picture alike", "103": "same picture",
    }  # fmt: skip
    assert [len(rows) for rows in one[0]] == [26, 0]


def test_differing_bits_are_counted_over_all_words_of_a_hash() -> None:
    one = np.array([0, 0b1011], np.uint64)
    hashes = np.array([[0, 0b1011], [0, 0], [2**64 - 1, 2**64 - 1]], np.uint64)
    assert distances(hashes, one).tolist() == [0, 3, 64 + 61]
    assert distances(hashes[:0], one).tolist() == []
