"""The training curves as one picture: reward, accuracy, entropy, protocol, routing, groups, experts, lengths, time."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Line = tuple[str, str, str]
"""Key of a step record (a dot leads into a nested one), colour, label."""

_BLUE, _GREEN, _RED, _VIOLET, _OCHRE, _GREY = "#1f5fa8", "#2a7d4f", "#b3362b", "#8a4fa8", "#c98a1b", "#444444"
_PANELS: list[tuple[str, list[Line]]] = [
    ("reward (mean over valid rollouts)", [("reward", _BLUE, "reward"), ("format", _RED, "format part")]),
    ("accuracy", [("accuracy", _GREEN, "training rollouts"), ("validation.accuracy", "#111111", "validation")]),
    ("policy entropy (nats a token)", [("entropy", _VIOLET, "entropy")]),
    (
        "protocol (shares)",
        [
            ("malformed", _RED, "malformed rollouts"),
            ("copied", _OCHRE, "sub-question = question"),
            ("cut_turns", _GREY, "turn cut at its limit"),
        ],
    ),
    ("most used pairs (share of calls)", []),
    ("calls an episode", [("calls", _BLUE, "calls"), ("several_calls", _OCHRE, "share with more than one")]),
    (
        "groups that teach nothing (share)",
        [
            ("groups_all_right", _GREEN, "all right"),
            ("groups_all_wrong", _RED, "all wrong"),
            ("groups_flat", _GREY, "flat"),
            ("groups_excluded", _VIOLET, "excluded"),
        ],
    ),
    ("without an answer (share)", [("invalid", _RED, "lost rollouts"), ("expert_failures", _OCHRE, "failed calls")]),
    (
        "seconds a step",
        [("seconds", _GREY, "step"), ("seconds_gen", _BLUE, "rollout"), ("seconds_update", _GREEN, "update")],
    ),
]
_SHARES_OF = {"groups_": "groups", "invalid": "rollouts"}


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Step records in order; half-written lines and what is no record are left out."""
    if not path.exists():
        return []
    records = {}
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and type(record.get("step")) is int:
            records[record["step"]] = record
    return [records[step] for step in sorted(records)]


def draw_curves(records: Sequence[dict[str, Any]], out: Path, title: str) -> None:
    """Nine panels over update steps; thin line: step, thick line: mean of the last nine steps."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(3, 3).flatten()
    for axis, (name, lines) in zip(axes, _PANELS, strict=True):
        axis.set_title(name, fontsize=10)
        axis.grid(alpha=0.25)
        axis.set_xlabel("update step", fontsize=8)
        axis.tick_params(labelsize=8)
        for key, colour, label in lines:
            known = series(records, key)
            if not known:
                continue
            xs, ys = zip(*known, strict=True)
            few = len(known) * 4 < len(records)  # a validation is not in every step
            axis.plot(xs, ys, color=colour, alpha=1 if few else 0.3, lw=0.8, marker="o" if few else None, ms=4,
                      label=label if few else None)  # fmt: skip
            if not few:
                axis.plot(xs, smooth(ys), color=colour, lw=1.8, label=label)
        if len(lines) > 1 and axis.lines:
            axis.legend(fontsize=7)
    _pairs(axes[4], records)
    for axis, (name, _) in zip(axes, _PANELS, strict=True):
        if "share" in name and axis.lines:
            _from_zero(axis)
    figure.suptitle(title, fontsize=12)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    figure.savefig(partial, format="png")
    partial.replace(out)


def series(records: Sequence[dict[str, Any]], key: str) -> list[tuple[int, float]]:
    """(step, value) where the value is known; counts of groups and of lost rollouts as shares of their step's."""
    whole = next((total for start, total in _SHARES_OF.items() if key.startswith(start)), None)
    found = []
    for record in records:
        value: Any = record
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None and whole is not None:
            value = value / record[whole] if record.get(whole) else None
        if value is not None:
            found.append((int(record["step"]), float(value)))
    return found


def ends(records: Sequence[dict[str, Any]], key: str, window: int = 10) -> tuple[float, float, float | None] | None:
    """(start, end, newest) of a metric; None where it was never measured. Start and end are means of the first and the
    last `window` values, of a validation, which is not in every step, its first and its last value; newest is None
    where the newest step has none."""
    known = series(records, key)
    if not known:
        return None
    values = [value for _, value in known]
    newest = values[-1] if known[-1][0] == records[-1]["step"] else None
    width = 1 if key.startswith("validation.") else window
    first, last = values[:width], values[-width:]
    return sum(first) / len(first), sum(last) / len(last), newest


def _pairs(axis: Any, records: Sequence[dict[str, Any]]) -> None:
    totals: dict[str, int] = {}
    for record in records[-max(1, len(records) // 5) :]:
        for pair, count in record.get("pairs", {}).items():
            totals[pair] = totals.get(pair, 0) + count
    for pair in sorted(totals, key=lambda p: -totals[p])[:8]:
        shares = [pair_share(r.get("pairs", {}), pair) for r in records]
        axis.plot([r["step"] for r in records], smooth(shares), lw=1.2, label=pair.replace("_", " "))
    if totals:  # below the axes: eight names would hide the lines
        axis.legend(fontsize=5, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.17), handlelength=1,
                    columnspacing=1, frameon=False)  # fmt: skip


def _from_zero(axis: Any) -> None:
    """An axis of shares: from 0 to just above the largest, and to 0.05 at least; a line at 0 stays visible."""
    values = [float(y) for line in axis.lines for y in line.get_ydata() if math.isfinite(y)]
    axis.set_ylim(0, max(0.05, 1.05 * max(values, default=0.0)))
    for line in axis.lines:
        line.set(clip_on=False, zorder=3)


def pair_share(pairs: dict[str, int], pair: str) -> float:
    """Share of a step's calls that went to one pair."""
    return pairs.get(pair, 0) / max(1, sum(pairs.values()))


def smooth(values: Sequence[float], width: int = 9) -> list[float]:
    """Mean of each value and those before it, `width` in all."""
    return [
        sum(values[max(0, i - width + 1) : i + 1]) / len(values[max(0, i - width + 1) : i + 1])
        for i in range(len(values))
    ]
