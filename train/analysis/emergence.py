"""How behaviour emerges over training, as the paper shows it: reward and entropy (E.4, its figure 5), calls an episode
and the share of malformed rollouts (G.7).

One idea: everything is read from a run's `metrics.jsonl`; runs are laid over each other, so that an ablation is one
command with two folders.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train.curves import read_metrics, series, smooth
from train.paths import RunPaths

COLUMNS = (
    "reward", "entropy", "calls", "several_calls", "malformed", "accuracy", "format", "copied", "turns", "kl",
    "invalid",
)  # fmt: skip
_COLOURS = ("#1f5fa8", "#b3362b", "#2a7d4f", "#8a4fa8", "#c98a1b", "#444444")
_DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class TrainedRun:
    """One run. label: what tells it from the others in a legend."""

    folder: Path
    label: str
    records: list[dict[str, Any]]


def read_runs(folders: Sequence[Path]) -> list[TrainedRun]:
    """Raises UserFault for a folder that holds no step records."""
    found = []
    for folder in folders:
        paths = RunPaths.at(folder)
        records = read_metrics(paths.metrics)
        if not records:
            raise UserFault("no training step is recorded here", where=str(paths.metrics), fix="give a run's folder")
        found.append((paths.root, records))
    return [
        TrainedRun(root, label, records)
        for (root, records), label in zip(found, _labels([root for root, _ in found]), strict=True)
    ]


def _labels(roots: Sequence[Path]) -> list[str]:
    """The folders' names; with their parents where two are called the same."""
    names = [root.name for root in roots]
    return [root.name if names.count(root.name) == 1 else f"{root.parent.name}/{root.name}" for root in roots]


def draw_emergence(runs: Sequence[TrainedRun], out: Path, *, width: int = 9) -> None:
    """Four panels as PNG. Thin line: step; thick line: mean of the last `width` steps."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    panels = (
        ("reward", "(a) reward"),
        ("entropy", "(b) policy entropy (nats a token)"),
        ("calls", "(c) calls an episode"),
        ("malformed", "(d) share of malformed rollouts"),
    )
    for axis, (key, title) in zip(figure.subplots(2, 2).flatten(), panels, strict=True):
        axis.set_title(title, fontsize=11)
        axis.set_xlabel("update step", fontsize=9)
        axis.grid(alpha=0.25)
        axis.tick_params(labelsize=9)
        for place, run in enumerate(runs):
            known = series(run.records, key)
            if not known:
                continue
            xs, ys = zip(*known, strict=True)
            colour, dash = _COLOURS[place % len(_COLOURS)], _DASHES[place // len(_COLOURS) % len(_DASHES)]
            axis.plot(xs, ys, color=colour, lw=0.8, alpha=0.3)
            axis.plot(xs, smooth(ys, width), dash, color=colour, lw=2, label=run.label)
        if key in ("calls", "malformed") and axis.lines:
            axis.set_ylim(0, 1.1 * max(axis.get_ylim()[1], 0.01))
        if not axis.lines:
            axis.text(0.5, 0.5, "not recorded", ha="center", va="center", transform=axis.transAxes, color="#777777")
    if len(runs) > 1:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(runs)), fontsize=9)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    figure.savefig(partial, format="png")
    partial.replace(out)


def write_table(runs: Sequence[TrainedRun], out: Path) -> None:
    """One CSV line a run and step; what is not known is empty. `invalid` is a share of the step's rollouts."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    with partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("run", "step", *COLUMNS))
        for run in runs:
            columns = {key: dict(series(run.records, key)) for key in COLUMNS}
            for record in run.records:
                values = (columns[key].get(record["step"]) for key in COLUMNS)
                writer.writerow((run.label, record["step"], *("" if v is None else f"{v:.6g}" for v in values)))
    partial.replace(out)


def summary(run: TrainedRun, window: int = 10) -> dict[str, Any]:
    """First and last `window` steps of a run in numbers, by column: {"steps", "reward": [first, last], ...}."""
    found: dict[str, Any] = {"run": run.label, "folder": str(run.folder), "steps": run.records[-1]["step"]}
    for key in COLUMNS:
        first, last = (_mean(series(part, key)) for part in (run.records[:window], run.records[-window:]))
        found[key] = [first, last]
    return found


def _mean(values: Sequence[tuple[int, float]]) -> float | None:
    return sum(value for _, value in values) / len(values) if values else None
