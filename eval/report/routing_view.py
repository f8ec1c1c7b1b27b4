"""The expert x skill x family matrix and the routing heat map, arranged for tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval.matrix import Matrix, pair_name
from eval.report.overview import arms_of

LEAST_SHARE = 0.02
MOST_SIDES = 3


def matrix_view(matrix: Matrix) -> dict[str, Any]:
    best = {family: matrix.best(family)[0] for family in matrix.families}
    rows = []
    for index, pair in enumerate(matrix.pairs):
        cells = [{"value": matrix.accuracy(pair, family), "best": best[family] == pair} for family in matrix.families]
        first = index > 0 and matrix.pairs[index - 1][0] != pair[0]
        overall = matrix.overall(pair)
        rows.append({"expert": pair[0], "skill": pair[1], "cells": cells, "overall": overall, "first": first})
    drops = {}
    for family in matrix.families:
        drop = matrix.drop(family)
        drops[family] = {
            "best_pair": pair_name(drop.best),
            "accuracy": drop.accuracy,
            "wrong_skill": _less(drop.accuracy, drop.wrong_skill),
            "wrong_expert": _less(drop.accuracy, drop.wrong_expert),
        }
    return {"families": matrix.families, "rows": rows, "drops": drops, "note": _note(matrix)}


def routing_view(results: Mapping[str, Any], matrix: Matrix | None) -> dict[str, Any] | None:
    """Shares of each family's calls, before and after training; where there is neither, those of up to three arms whose
    calls went to more than one pair. ``None`` where nobody called."""
    sides = _sides(results)
    families = sorted({family for _, pairs in sides for family in pairs})
    if not families:
        return None
    shares = [{family: _shares(pairs.get(family, {}).get("counts", {})) for family in families} for _, pairs in sides]
    seen = {
        pair for side in shares for family in side.values() for pair, value in family.items() if value >= LEAST_SHARE
    }
    order = [pair_name(pair) for pair in matrix.pairs] if matrix else []
    names = [pair for pair in order if pair in seen] + sorted(seen - set(order))
    best = {family: pair_name(matrix.best(family)[0]) for family in matrix.families} if matrix else {}
    rows = []
    for index, name in enumerate(names):
        expert, _, skill = name.partition("@@")
        cells = [
            [{"value": side[family].get(name), "best": best.get(family) == name} for family in families]
            for side in shares
        ]
        first = index > 0 and names[index - 1].partition("@@")[0] != expert
        rows.append({"expert": expert, "skill": skill, "sides": cells, "first": first})
    arms = arms_of(results)
    return {
        "families": families,
        "rows": rows,
        "sides": [
            {
                "title": name.replace("_", " "),
                "entropy": [pairs.get(family, {}).get("entropy_bits") for family in families],
                "whole": arms[name].get("routing"),
            }
            for name, pairs in sides
        ],
    }


def _sides(results: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    named = [(name, results[name]["pairs"]) for name in ("before", "after") if results.get(name)]
    if named:
        return named
    found = []
    for name, entry in results["baselines"].items():
        if len({pair for one in entry["pairs"].values() for pair in one.get("counts", {})}) > 1:
            found.append((name, entry["pairs"]))
    return found[:MOST_SIDES]


def _note(matrix: Matrix) -> str:
    pair, value = matrix.best_single()
    errors = f" {matrix.errors} calls failed and are left out." if matrix.errors else ""
    number = "–" if value is None else f"{value:.2f}"
    return f"Best single pair over all families: {pair_name(pair)}, {number}.{errors}"


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {pair: count / total for pair, count in counts.items()} if total else {}


def _less(value: float, drop: float | None) -> float | None:
    return None if drop is None else value - drop
