"""Pictures of an evaluation for files and README: the matrix as a heat map, and accuracy before and after
as bars.

The one idea: every value is printed as a number too, so nothing has to be read off a colour. matplotlib is
imported only here, and only when something is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.matrix import Matrix

INK, BEFORE, AFTER, RULE = "#1f2933", "#b8c4d0", "#1f6fb2", "#7b8794"


def draw_matrix(matrix: Matrix, path: Path) -> Path:
    """Rows = pairs (grouped by expert), columns = families, the best pair of each family framed. Writes a
    PNG."""
    plt = _pyplot()
    rows, columns = matrix.pairs, matrix.families
    values = [[matrix.accuracy(pair, family) for family in columns] for pair in rows]
    figure, axes = plt.subplots(figsize=(5.2 + 0.62 * len(columns), 2.4 + 0.3 * len(rows)))
    shown = [[float("nan") if value is None else value for value in row] for row in values]
    axes.imshow(shown, cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    best = {family: matrix.best(family)[0] for family in columns}
    for y, pair in enumerate(rows):
        for x, family in enumerate(columns):
            value = values[y][x]
            text = "-" if value is None else f"{value:.2f}"
            colour = "white" if value is not None and value > 0.65 else INK
            axes.text(x, y, text, ha="center", va="center", fontsize=8, color=colour)
            if best[family] == pair:
                axes.add_patch(plt.Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="#d9480f", lw=2))
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="left", fontsize=9)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), [f"{expert} @@ {skill}" for expert, skill in rows], fontsize=8)
    for y in range(1, len(rows)):
        if rows[y][0] != rows[y - 1][0]:
            axes.axhline(y - 0.5, color=RULE, lw=1)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("accuracy; framed: the best pair of the family", fontsize=9, color=INK)
    return _save(figure, path)


def draw_summary(results: Mapping[str, Any], path: Path) -> Path:
    """Left: accuracy of every arm with its 95 % interval. Right: accuracy per family before and after.
    Writes a PNG."""
    plt = _pyplot()
    arms = _arms(results)
    families: Mapping[str, Mapping[str, float | None]] = results["families"]
    height = max(3.2, 0.34 * max(len(arms), len(families)) + 1.2)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, height), gridspec_kw={"wspace": 0.45})
    for y, (name, entry) in enumerate(arms):
        accuracy = entry.get("accuracy")
        if accuracy is None:
            continue
        left.barh(y, accuracy, color=AFTER if name == "after" else BEFORE, height=0.62)
        low, high = entry.get("ci95") or (accuracy, accuracy)
        left.plot([low, high], [y, y], color=INK, lw=1.4)
        left.text(high + 0.015, y, f"{accuracy:.2f}", va="center", fontsize=9, color=INK)
    left.set_yticks(range(len(arms)), [name.replace("_", " ") for name, _ in arms], fontsize=9)
    left.set_title("Accuracy on the test split, 95 % intervals", fontsize=10, loc="left", color=INK)
    names = sorted(families)
    for y, family in enumerate(names):
        for offset, key, colour in ((-0.19, "before", BEFORE), (0.19, "after", AFTER)):
            value = families[family].get(key)
            if value is not None:
                right.barh(y + offset, value, color=colour, height=0.36)
    right.set_yticks(range(len(names)), names, fontsize=9)
    right.set_title("Per family: before (grey) and after (blue)", fontsize=10, loc="left", color=INK)
    for axes in (left, right):
        axes.set_xlim(0, 1.08)
        axes.invert_yaxis()
        axes.tick_params(length=0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
    return _save(figure, path)


def _arms(results: Mapping[str, Any]) -> Sequence[tuple[str, Mapping[str, Any]]]:
    named = [(name, results[name]) for name in ("after", "before") if results.get(name)]
    return [*named, *results["baselines"].items()]


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight", facecolor="white")
    _pyplot().close(figure)
    return path
