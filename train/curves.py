"""The training curves as one picture: reward, accuracy, entropy, protocol, routing, time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Step records in order; a half-written last line is left out."""
    if not path.exists():
        return []
    records = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        records[record["step"]] = record
    return [records[step] for step in sorted(records)]


def draw_curves(records: Sequence[dict[str, Any]], out: Path, title: str) -> None:
    """Six panels over update steps; thin line: step, thick line: mean of the last nine steps."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 3).flatten()
    steps = [r["step"] for r in records]
    panels: list[tuple[str, list[tuple[str, str, str]]]] = [
        ("reward (mean over valid rollouts)", [("reward", "#1f5fa8", "reward")]),
        ("accuracy of training rollouts", [("accuracy", "#2a7d4f", "accuracy")]),
        ("policy entropy (nats a token)", [("entropy", "#8a4fa8", "entropy")]),
        ("protocol", [("malformed", "#b3362b", "malformed rollouts"),
                      ("copied", "#c98a1b", "sub-question = question")]),
        ("most used pairs (share of calls)", []),
        ("seconds a step", [("seconds", "#444444", "step"), ("seconds_gen", "#1f5fa8", "rollout"),
                            ("seconds_update", "#2a7d4f", "update")]),
    ]  # fmt: skip
    for axis, (name, lines) in zip(axes, panels, strict=True):
        axis.set_title(name, fontsize=10)
        axis.grid(alpha=0.25)
        axis.set_xlabel("update step", fontsize=8)
        axis.tick_params(labelsize=8)
        for key, colour, label in lines:
            values = [r.get(key) for r in records]
            known = [(s, v) for s, v in zip(steps, values, strict=True) if v is not None]
            if not known:
                continue
            xs, ys = zip(*known, strict=True)
            axis.plot(xs, ys, color=colour, alpha=0.3, lw=0.8)
            axis.plot(xs, _smooth(ys), color=colour, lw=1.8, label=label)
        if len(lines) > 1 and axis.lines:
            axis.legend(fontsize=7)
    _pairs(axes[4], records)
    figure.suptitle(title, fontsize=12)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    figure.savefig(partial, format="png")
    partial.replace(out)


def _pairs(axis: Any, records: Sequence[dict[str, Any]]) -> None:
    totals: dict[str, int] = {}
    for record in records[-max(1, len(records) // 5) :]:
        for pair, count in record.get("pairs", {}).items():
            totals[pair] = totals.get(pair, 0) + count
    for pair in sorted(totals, key=lambda p: -totals[p])[:8]:
        shares = [_share(r.get("pairs", {}), pair) for r in records]
        axis.plot([r["step"] for r in records], _smooth(shares), lw=1.2, label=pair.replace("_", " "))
    if totals:
        axis.legend(fontsize=5)


def _share(pairs: dict[str, int], pair: str) -> float:
    return pairs.get(pair, 0) / max(1, sum(pairs.values()))


def _smooth(values: Sequence[float], width: int = 9) -> list[float]:
    return [
        sum(values[max(0, i - width + 1) : i + 1]) / len(values[max(0, i - width + 1) : i + 1])
        for i in range(len(values))
    ]
