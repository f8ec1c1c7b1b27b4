"""`maestro evaluate report` where the benchmark's data is gone: everything but the pictures, and a reason."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from made_benchmark import READER, Birds, row, stop_after

from eval.redraw import redraw
from eval.run import Evaluation, evaluate
from maestro.cli.app import run
from registry.registry import Registry


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Birds:
    """Twelve rows, of which the sixth has no right answer."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return Birds(tmp_path, [row(number, answer=None if number == 5 else "1234") for number in range(12)])


def start(birds: Birds, *, settings: dict[str, Any] | None = None, **options: Any) -> Evaluation:
    config = birds.config(**{"data": {"most_faulty": 0.5}, **(settings or {})})
    return asyncio.run(evaluate(config, Registry.load(birds.folder / "registry.yaml"), birds.run, **options))


def report(birds: Birds) -> str:
    return (birds.run / "report.html").read_text()


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def numbers(results: Any) -> dict[str, Any]:
    return {key: value for key, value in json.loads(json.dumps(results)).items() if key != "seconds"}


def test_tables_plots_and_texts_are_drawn_without_the_data_and_the_page_says_why_there_are_no_pictures(
    birds: Birds, capsys: pytest.CaptureFixture[str]
) -> None:
    first = start(birds)
    whole = report(birds)
    before = data_of(whole)
    assert (first.results["skipped"], before["pictures"][0][:11]) == ({"no gold answer": 1}, "data:image/")
    shutil.move(birds.folder / "data", birds.folder / "elsewhere")
    assert run(["evaluate", "report", str(birds.run)]) == 0
    said = capsys.readouterr()
    assert "The report has no pictures, as the rows of the benchmark cannot be read:" in said.out
    assert "elsewhere" not in said.out and str(birds.folder / "data") in said.out
    page = report(birds)
    assert "<b>Pictures are missing:</b>" in page and str(birds.folder / "data") in page
    assert "none is here, for the reason told above" in page
    after = data_of(page)
    assert after["pictures"] == [None]
    assert (after["cards"], after["strings"]) == (before["cards"], before["strings"])
    plots = re.compile(r"<svg.*?</svg>", re.DOTALL)
    assert plots.findall(page) == plots.findall(whole) != []
    assert numbers(json.loads((birds.run / "results.json").read_text())) == numbers(first.results)


def test_the_json_answer_tells_it_and_data_put_back_brings_the_pictures_back(
    birds: Birds, capsys: pytest.CaptureFixture[str]
) -> None:
    start(birds)
    whole = report(birds)
    shutil.move(birds.folder / "data", birds.folder / "elsewhere")
    assert run(["evaluate", "report", str(birds.run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert str(birds.folder / "data") in told["without_pictures"]
    shutil.move(birds.folder / "elsewhere", birds.folder / "data")
    assert run(["evaluate", "report", str(birds.run), "--json"]) == 0
    assert "without_pictures" not in json.loads(capsys.readouterr().out)
    assert data_of(report(birds)) == data_of(whole)
    assert "Pictures are missing" not in report(birds)


def test_data_that_has_moved_is_read_where_it_is_now(birds: Birds, capsys: pytest.CaptureFixture[str]) -> None:
    start(birds)
    whole = data_of(report(birds))
    shutil.move(birds.folder / "data", birds.folder / "elsewhere")
    call = ["evaluate", "report", str(birds.run)]
    assert run(call) == 0
    assert data_of(report(birds))["pictures"] == [None]
    assert run([*call, "--data-root", str(birds.folder / "elsewhere"), "--json"]) == 0
    assert data_of(report(birds)) == whole
    capsys.readouterr()
    assert run([*call, "--data-root", str(birds.folder / "nowhere")]) == 2
    assert str(birds.folder / "nowhere") in capsys.readouterr().err
    assert data_of(report(birds)) == whole
    assert run([*call, "--data-root", str(birds.folder / "elsewhere"), "--out", str(birds.folder / "all.html")]) == 2
    assert "--data-root" in capsys.readouterr().err


def test_the_benchmarks_file_may_be_gone_too_and_its_own_average_stays(birds: Birds) -> None:
    first = start(birds)
    shutil.rmtree(birds.folder / "data")
    (birds.folder / "birds.yaml").unlink()
    again = redraw(birds.run)
    assert again.unread is not None
    assert numbers(again.results) == numbers(first.results)
    assert again.results["baselines"]["reader"]["lenient"]["differ"] == 4


def test_rows_that_break_in_the_middle_of_the_reading_are_no_reason_to_draw_nothing(birds: Birds) -> None:
    first = start(birds)
    file = birds.folder / "data" / "samples.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:4]) + 8 * "{}\n")
    again = redraw(birds.run)
    assert again.unread is not None and "% of the rows are faulty" in again.unread.what
    assert numbers(again.results) == numbers(first.results)


def test_a_smaller_limit_than_before_counts_the_rows_of_the_last_results(birds: Birds) -> None:
    start(birds)
    first = start(birds, limit=4)
    shutil.rmtree(birds.folder / "data")
    again = redraw(birds.run)
    assert (again.results["rows"]["test"], again.results["trajectories"]) == (4, 4)
    assert numbers(again.results) == numbers(first.results)


def test_a_run_that_was_killed_has_a_report_of_what_ran(birds: Birds) -> None:
    stopped, display = stop_after(5, "reader")
    with pytest.raises(stopped):
        start(birds, settings={"rows": {"test": 8}}, start_phase=display)
    shutil.rmtree(birds.folder / "data")
    results = redraw(birds.run).results
    ran = results["trajectories"]
    assert 5 <= ran < 8
    assert (results["status"], results["expected"], results["rows"]) == ("incomplete", 8, {"test": 8})


def test_the_matrix_stays_in_the_report(birds: Birds) -> None:
    settings = {"arms": {"best": {"kind": "best_single_pair"}, **READER}, "rows": {"validation": 4}}
    first = start(birds, settings=settings)
    shutil.rmtree(birds.folder / "data")
    again = redraw(birds.run)
    assert first.results["rows"]["validation"] == 4
    assert numbers(again.results) == numbers(first.results)
    assert (birds.run / "matrix.png").is_file()
