"""Benchmarks as data: what comes along, what a user drops in, and what is wrong with a file, by its lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.benchmarks.catalogue import find_benchmark, find_benchmarks, load_all
from registry.errors import UserFault

MINE = """\
name: birds
title: Birds
licence: mine
scorer: {official: exact, source: this file}
"""


def test_every_benchmark_that_comes_along_is_read() -> None:
    assert [one.name for one in load_all()] == [
        "chartqa", "embedded", "erqa", "geometry3k", "hrbench4k", "hrbench8k", "humaneval_v", "mathvision",
        "microvqa", "msearthmcq", "ocrbench", "slake", "tallyqa", "vlmsareblind", "vstar",
    ]  # fmt: skip


def test_each_says_where_its_rule_was_read_and_what_its_licence_is() -> None:
    assert all(one.scorer.source and one.licence and one.about for one in load_all())


@pytest.mark.parametrize(
    ("written", "name"),
    [("ChartQA", "chartqa"), ("v*", "vstar"), ("HR-Bench-4K", "hrbench4k"), ("VLMs are blind", "vlmsareblind")],
)
def test_a_name_is_read_in_any_spelling(written: str, name: str) -> None:
    assert find_benchmark(written).name == name


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserFault) as caught:
        find_benchmark("chartqq")
    assert "did you mean 'chartqa'" in str(caught.value)


def test_a_file_or_a_folder_stands_where_a_name_does(tmp_path: Path) -> None:
    (tmp_path / "birds.yaml").write_text(MINE)
    assert find_benchmark(str(tmp_path / "birds.yaml")).name == "birds"
    assert [one.name for one in find_benchmarks(str(tmp_path))] == ["birds"]
    (tmp_path / "again.yaml").write_text(MINE)
    with pytest.raises(UserFault, match="two benchmarks are called 'birds'"):
        find_benchmarks(str(tmp_path))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("quesiton: query", "birds.yaml:5: unknown key 'quesiton' (did you mean 'question'?)"),
        ("group: colour", "group names the group 'colour', which 'groups' does not hold"),
        ("metrics: {headline: macro}", "birds.yaml:5: metrics: 'over' names the group of a macro headline"),
        ("question: '{{ query'", "birds.yaml:5: question: the template '{{ query'"),
        ("hub: {id: nowhere, split: test}", "birds.yaml:5: hub.id"),
        ("answer: {columns: tests, kind: program}", "belong together"),
        ("name: other", "birds.yaml:5: the key 'name' is repeated (first at line 1)"),
    ],
)
def test_a_fault_of_the_file_is_told_with_its_line(tmp_path: Path, line: str, fault: str) -> None:
    path = tmp_path / "birds.yaml"
    path.write_text(f"{MINE}{line}\n")
    with pytest.raises(UserFault) as caught:
        find_benchmark(str(path))
    assert fault in str(caught.value)


def test_an_unknown_rule_is_refused_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "birds.yaml"
    path.write_text(MINE.replace("official: exact", "official: exakt"))
    with pytest.raises(UserFault, match="unknown rule 'exakt'; did you mean 'exact'"):
        find_benchmark(str(path))
