"""Results and cards into one HTML file.

The one idea: the template gets plain values and escapes all of them; style, script and pictures are
inlined, and a content security policy in the page itself forbids any network access and any script but
ours.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from eval.matrix import Matrix, pair_name
from eval.report.cards import MOST_ERRORS, Card

_LEAST_SHARE = 0.02


@dataclass(frozen=True)
class Material:
    """Everything that the report shows."""

    title: str
    results: Mapping[str, Any]
    """The content of ``results.json``."""
    matrix: Matrix | None = None
    cards: Sequence[Card] = ()
    total: int = 0
    """Trajectories in the journal."""
    pictures: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 -> data URL of the cards' pictures."""
    curves: bytes | None = None
    """PNG of the training curves."""


def render(material: Material) -> str:
    """The whole page as text."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["shade"] = shade
    script = _asset("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.from_string(_asset("template.html.jinja")).render(
        page=_page(material),
        style=Markup(_asset("style.css")),
        script=Markup(script),
        script_hash=Markup(f"sha256-{digest}"),
        pictures=Markup(_json_in_html(material.pictures)),
    )


def write_report(material: Material, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(material), encoding="utf-8")
    return path


def shade(value: float) -> str:
    """Background colour of a share: near white at 0, full blue at 1."""
    share = min(1.0, max(0.0, value)) ** 0.8
    low, high = (243, 247, 251), (21, 94, 160)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(low, high, strict=True))


def _page(material: Material) -> dict[str, Any]:
    results = material.results
    named = [(name, results[name]) for name in ("after", "before") if results.get(name)]
    arms = [*named, *results["baselines"].items()]
    unseen = results.get("unseen") or {}
    beside = {name: unseen.get(name) for name in ("after", "before")} | dict(unseen.get("baselines") or {})
    shared = results["shared_wordings"]
    matrix = material.matrix
    return {
        "title": material.title,
        "subtitle": _subtitle(results),
        "errors": results["errors"],
        "missing": results["expected"] - results["trajectories"],
        "tiles": _tiles(results),
        "curves": None if material.curves is None else _png_url(material.curves),
        "arms": [
            {
                "title": name.replace("_", " "),
                "lead": name == "after",
                "entry": entry,
                "unseen": beside.get(name),
                "shared": shared.get(name),
            }
            for name, entry in arms
        ],
        "families": results["families"],
        "matrix": None if matrix is None else _matrix(matrix),
        "matrix_note": "" if matrix is None else _matrix_note(matrix),
        "routing": _routing(results, matrix),
        "cards": material.cards,
        "total": material.total,
        "most_errors": MOST_ERRORS,
        "filters": {
            "arm": list(dict.fromkeys(card.arm for card in material.cards)),
            "verdict": ["right", "wrong", "error"],
            "family": sorted({card.family for card in material.cards}),
            "pair": sorted({pair for card in material.cards for pair in card.pairs}),
            "stop": sorted({card.stop for card in material.cards}),
            "split": sorted({card.split for card in material.cards}),
        },
        "made_with": {"seed": results["seed"], **results["versions"]},
    }


def _subtitle(results: Mapping[str, Any]) -> str:
    parts = [f"benchmark {results['benchmark']}", f"{results['rows']['test']} test questions"]
    if results["rows"].get("test_unseen"):
        parts.append(f"{results['rows']['test_unseen']} under unseen wordings")
    if results.get("grpo_steps"):
        parts.append(f"{results['grpo_steps']} GRPO steps")
    return ", ".join([*parts, f"seed {results['seed']}"])


def _tiles(results: Mapping[str, Any]) -> list[dict[str, str]]:
    after, before, baselines = results.get("after"), results.get("before"), results["baselines"]
    tiles: list[dict[str, str]] = []
    if after:
        tiles.append({"label": "accuracy after training", "value": _share(after["accuracy"]), "note": _range(after)})
    if before:
        tiles.append({"label": "before", "value": _share(before["accuracy"]), "note": _range(before)})
    gain = results.get("gain")
    if gain:
        low, high = gain["ci95"]
        note = f"paired by question, 95 %: {100 * low:.1f} to {100 * high:.1f}"
        tiles.append({"label": "gain, points", "value": f"{100 * gain['difference']:+.1f}", "note": note})
    oracle = (baselines.get("oracle") or {}).get("accuracy")
    if after and oracle and after["accuracy"] is not None:
        note = f"oracle, a right pair for each question: {_share(oracle)}"
        tiles.append({"label": "of the oracle's accuracy", "value": _share(after["accuracy"] / oracle), "note": note})
    if baselines.get("keyword"):
        entry = baselines["keyword"]
        tiles.append({"label": "keyword routing", "value": _share(entry["accuracy"]), "note": _range(entry)})
    unseen = (results.get("unseen") or {}).get("after")
    if unseen:
        tiles.append({"label": "unseen wordings, after", "value": _share(unseen["accuracy"]), "note": _range(unseen)})
    if after:
        note = "episodes with a malformed turn"
        tiles.append({"label": "malformed after", "value": _share(after["malformed_rate"]), "note": note})
        note = "of the calls after training"
        tiles.append({"label": "question passed on as it is", "value": _share(after["copied_share"]), "note": note})
    return tiles


def _matrix(matrix: Matrix) -> dict[str, Any]:
    best = {family: matrix.best(family)[0] for family in matrix.families}
    rows = []
    for index, pair in enumerate(matrix.pairs):
        cells = [{"value": matrix.accuracy(pair, family), "best": best[family] == pair} for family in matrix.families]
        first = index > 0 and matrix.pairs[index - 1][0] != pair[0]
        rows.append(
            {
                "expert": pair[0],
                "skill": pair[1],
                "cells": cells,
                "overall": matrix.overall(pair),
                "first": first,
            }
        )
    drops = {}
    for family in matrix.families:
        drop = matrix.drop(family)
        drops[family] = {
            "best_pair": pair_name(drop.best),
            "accuracy": drop.accuracy,
            "wrong_skill": _less(drop.accuracy, drop.wrong_skill),
            "wrong_expert": _less(drop.accuracy, drop.wrong_expert),
        }
    return {"families": matrix.families, "rows": rows, "drops": drops}


def _matrix_note(matrix: Matrix) -> str:
    pair, value = matrix.best_single()
    errors = f" {matrix.errors} calls failed and are left out." if matrix.errors else ""
    return f"Best single pair over all families: {pair_name(pair)}, {_number(value)}.{errors}"


def _routing(results: Mapping[str, Any], matrix: Matrix | None) -> dict[str, Any] | None:
    sides = [(name, results[name]["pairs"]) for name in ("before", "after") if results.get(name)]
    families = sorted({family for _, pairs in sides for family in pairs})
    if not families:
        return None
    shares = [{family: _shares(pairs.get(family, {}).get("counts", {})) for family in families} for _, pairs in sides]
    seen = {
        pair for side in shares for family in side.values() for pair, share in family.items() if share >= _LEAST_SHARE
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
    return {
        "families": families,
        "rows": rows,
        "sides": [
            {"title": name, "entropy": [pairs.get(family, {}).get("entropy_bits") for family in families]}
            for name, pairs in sides
        ],
    }


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {pair: count / total for pair, count in counts.items()} if total else {}


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _range(entry: Mapping[str, Any]) -> str:
    if not entry.get("ci95"):
        return f"{entry['n']} questions"
    low, high = entry["ci95"]
    return f"95 %: {100 * low:.1f} to {100 * high:.1f}, {entry['n']} questions"


def _less(value: float, drop: float | None) -> float | None:
    return None if drop is None else value - drop


def _png_url(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _json_in_html(value: Any) -> str:
    """JSON that can stand inside a script element: no ``<`` can close it or open a comment."""
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("eval.report").joinpath(name).read_text(encoding="utf-8")
