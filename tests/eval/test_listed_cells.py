"""Lists in one cell: JSON, and Python's own writing of them, as VLMEvalKit's tables have it."""

from __future__ import annotations

import base64
import csv
import io
import time
from pathlib import Path

import pytest
from PIL import Image

from eval.benchmarks.catalogue import find_benchmark
from eval.benchmarks.listed import read_list
from eval.benchmarks.reader import Reading, read_items


def base64_picture(width: int) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (width, 40), (0, 90, 160)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        (" [ 'a' , \"it's\", ] ", ["a", "it's"]),
        (r"['it\'s', 'é', '两']", ["it's", "é", "两"]),
        ("[1, -2.5, None, 'x, y]']", [1, -2.5, None, "x, y]"]),
        ("['']", [""]),
        ("[]", []),
    ],
)
def test_json_and_python_lists_are_read(text: str, value: list[object]) -> None:
    assert read_list(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "['a'] + ['b']",
        "['a' 'b']",
        "['a'",
        "['a']]",
        "[['a']]",
        "[" * 100_000,
        "['a'," * 100_000,
        "[" + "1+" * 100_000 + "1]",
        "[" + "'a'," * 5000 + "]",
        "['" + "\\" * 100_001,
    ],
)
def test_anything_else_is_refused_at_once(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(ValueError, match="neither JSON nor a Python list of texts"):
        read_list(text)
    assert time.perf_counter() - started < 1


def test_several_pictures_and_the_options_of_a_table_written_by_vlmevalkit_are_read(tmp_path: Path) -> None:
    pictures = [base64_picture(60), base64_picture(80)]
    with (tmp_path / "ERQA.tsv").open("w", newline="") as file:
        table = csv.writer(file, delimiter="\t")
        table.writerow(["index", "image", "question", "answer"])
        table.writerow(["1", str(pictures), "Which? Choices: A. left. B. right.", "B"])
    [item] = read_items(find_benchmark("erqa"), Reading(tmp_path))
    assert [(picture.width, picture.height) for picture in item.pictures] == [(60, 40), (80, 40)]
    with (tmp_path / "micro.tsv").open("w", newline="") as file:
        table = csv.writer(file, delimiter="\t")
        table.writerow(["key_question", "image", "question", "choices", "correct_index"])
        table.writerow(["1", "", "Which cell?", "['it\\'s round', \"a 'square'\"]", "1"])
    [item] = read_items(find_benchmark("microvqa"), Reading(tmp_path / "micro.tsv", text_only=True))
    assert (item.row.choices, item.row.answer) == (("it's round", "a 'square'"), "B")
