"""`maestro benchmarks`: the list, rows as they will be asked, and what is wrong with a copy."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from maestro.cli.app import run

MINE = """\
name: birds
title: Birds
licence: mine
id: id
choices: {columns: choices}
answer: {columns: answer, kind: option}
groups: {place: {columns: place}}
group: place
scorer: {official: choice, source: this file}
metrics: {by: place}
"""


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    buffer = io.BytesIO()
    Image.new("RGB", (60, 40), (0, 90, 160)).save(buffer, "PNG")
    (tmp_path / "bird.png").write_bytes(buffer.getvalue())
    (tmp_path / "birds.yaml").write_text(MINE)
    row = {"question": "Which bird?\x1b[2J", "choices": ["robin", "wren"], "answer": "wren", "place": "wood"}
    rows: list[dict[str, Any]] = [
        {**row, "id": 1, "image": "bird.png"},
        {**row, "id": 2, "image": None},
        {**row, "id": 1, "image": "bird.png"},
        {**row, "id": 3, "image": "bird.png", "answer": "eagle"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    return tmp_path


def test_the_list_has_every_benchmark_with_its_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["benchmarks", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["benchmarks"]
    assert len(found) == 15
    assert {one["name"]: one["scorer"]["official"] for one in found}["hrbench8k"] == "hrbench_official"
    assert run(["benchmarks", "list"]) == 0
    assert "vlmsareblind" in capsys.readouterr().out


def test_a_dropped_in_benchmark_is_shown_as_it_will_be_asked(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["benchmarks", "show", str(birds / "birds.yaml"), "--data-root", str(birds / "rows.jsonl"), "--limit", "1"]
    assert run([*words, "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["rows"]
    assert row["asked"].endswith("\nA. robin\nB. wren")
    assert (row["id"], row["gold"], row["images"], row["groups"]) == ("birds/1", "B", [[60, 40]], {"place": "wood"})
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert "\x1b[2J" not in shown
    assert "60x40" in shown


def test_a_check_lists_every_faulty_row_and_ends_with_2(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["benchmarks", "check", str(birds / "birds.yaml"), "--data-root", str(birds / "rows.jsonl")]
    assert run(words) == 2
    rows = str(birds / "rows.jsonl")
    assert capsys.readouterr().out.splitlines() == [
        f"{rows}: line 2: no image",
        f"{rows}: line 3: duplicate id: 'birds/1'",
        f"{rows}: line 4: bad gold answer: gold answer 'eagle' names none of the options; they are ['robin', 'wren']",
        "birds: 1 of 4 rows; skipped 3: no image 1, duplicate id 1, bad gold answer 1",
        "the right answer scores 1 by choice: 1 of 1",
    ]
    assert run([*words, "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["usable"], found["reasons"]["no image"]) == (False, 1, 1)


def test_a_check_of_good_rows_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["benchmarks", "check", "embedded", "--limit", "3"]) == 0
    assert "the right answer scores 1 by embedded: 3 of 3" in capsys.readouterr().out
