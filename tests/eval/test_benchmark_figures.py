"""Figures of a benchmark: by row, by group, and as each benchmark's own rule averages them."""

from __future__ import annotations

import pytest

from eval.benchmarks.aggregate import Figure, aggregate
from eval.benchmarks.catalogue import find_benchmark
from eval.benchmarks.spec import Metrics


def test_hr_bench_is_the_mean_of_its_cycles_means() -> None:
    rows = [
        ("1", {"category": "single", "cycle": "0"}, 1.0),
        ("2", {"category": "single", "cycle": "0"}, 1.0),
        ("3", {"category": "cross", "cycle": "0"}, 0.0),
        ("4", {"category": "single", "cycle": "1"}, 0.0),
    ]
    found = aggregate(find_benchmark("hrbench4k").metrics, rows)
    assert found.headline == pytest.approx((2 / 3 + 0) / 2)
    assert found.micro == 0.5
    assert found.groups == {"category": {"cross": Figure(0.0, 1), "single": Figure(0.5, 3)}}


def test_vlms_are_blind_counts_a_task_that_is_all_wrong_as_zero() -> None:
    rows = [
        ("a", {"task": "counting grid"}, 1.0),
        ("b", {"task": "counting grid"}, 1.0),
        ("c", {"task": "squares"}, 0.0),
    ]
    found = aggregate(find_benchmark("vlmsareblind").metrics, rows)
    assert (found.headline, found.macro) == (pytest.approx(2 / 3), {"task": 0.5})


def test_several_samples_of_a_row_count_as_one_row() -> None:
    rows = [("a", {}, 1.0), ("a", {}, 0.0), ("b", {}, 1.0)]
    found = aggregate(Metrics(), rows)
    assert (found.headline, found.points, found.rows, found.values) == (0.75, 1.5, 2, 3)


def test_nothing_scored_is_no_figure() -> None:
    found = aggregate(find_benchmark("vstar").metrics, [])
    assert (found.headline, found.micro, found.macro, found.groups) == (None, None, {}, {"category": {}})


def test_a_row_that_lacks_a_label_or_changes_it_is_an_error() -> None:
    with pytest.raises(ValueError, match="no label for the group 'category'"):
        aggregate(find_benchmark("vstar").metrics, [("a", {}, 1.0)])
    with pytest.raises(ValueError, match="two different sets of groups"):
        aggregate(Metrics(), [("a", {"x": "1"}, 1.0), ("a", {"x": "2"}, 1.0)])
