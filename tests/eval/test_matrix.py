"""What follows from the counts of the expert x skill x family matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.figures import draw_matrix
from eval.matrix import Cell, Matrix, pair_name

A, B = ("A", "s"), ("B", "s")
A2, B2 = ("A", "t"), ("B", "t")


def matrix(**rows: tuple[float | None, ...]) -> Matrix:
    """Accuracies of the pairs A@@s, A@@t, B@@s, B@@t in each family, ten calls each."""
    pairs = (A, A2, B, B2)
    cells = {
        (pair, family): Cell(10 * value, 10) if value is not None else Cell(0, 0, 10)
        for family, values in rows.items()
        for pair, value in zip(pairs, values, strict=True)
    }
    return Matrix(pairs, tuple(rows), cells)


def test_the_best_pair_of_a_family_and_the_best_single_pair_are_different_things() -> None:
    found = matrix(x=(0.9, 0.1, 0.5, 0.0), y=(0.0, 0.2, 0.6, 1.0), z=(0.1, 0.0, 0.7, 0.2))
    assert [pair_name(found.best(family)[0]) for family in found.families] == ["A@@s", "B@@t", "B@@s"]
    pair, value = found.best_single()
    assert pair == B
    assert value == pytest.approx(0.6)


def test_ties_keep_the_order_of_the_registry() -> None:
    assert matrix(x=(0.5, 0.5, 0.5, 0.5)).best("x")[0] == A


def test_a_drop_compares_with_the_kindest_alternative() -> None:
    drop = matrix(x=(1.0, 0.4, 0.7, 0.9)).drop("x")
    assert drop.best == A
    assert drop.wrong_skill == pytest.approx(0.6)
    assert drop.wrong_expert == pytest.approx(0.3)
    assert drop.largest == pytest.approx(0.6)


def test_failed_calls_are_no_zero_and_make_no_best_pair() -> None:
    found = matrix(x=(None, 0.2, 0.1, 0.0), y=(1.0, 0.2, 0.1, 0.0))
    assert found.accuracy(A, "x") is None
    assert found.best("x")[0] == A2
    assert found.best_single()[0] == A2
    assert found.errors == 10


def test_a_matrix_survives_its_json_form() -> None:
    found = matrix(x=(0.9, 0.1, None, 0.0), y=(0.0, 0.2, 0.6, 1.0))
    again = Matrix.from_json(found.to_json())
    assert again.pairs == found.pairs
    assert again.families == found.families
    assert [again.accuracy(pair, "x") for pair in again.pairs] == [0.9, 0.1, None, 0.0]


def test_the_heat_map_is_a_png(tmp_path: Path) -> None:
    path = draw_matrix(matrix(x=(0.9, 0.1, None, 0.0), y=(0.0, 0.2, 0.6, 1.0)), tmp_path / "deep" / "matrix.png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
