"""Which plots a report has: each made from the numbers of `results.json`, each left out where it would say nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from eval.parts import Parts
from eval.report.charts import Line, Mark, dots, lines, scatter
from eval.report.overview import Entry, lenient_of
from registry.names import normalise

MOST_LINES = 6


@dataclass(frozen=True)
class Plot:
    title: str
    note: str
    svg: Markup


@dataclass(frozen=True)
class Sized:
    """One arm with a pool of ``skills`` Level-1 skills, on the line ``series`` of the N-scaling. ``experts``: whom it
    may call; none where that is not known."""

    series: str
    skills: int
    entry: Entry
    experts: tuple[str, ...] = ()


def accuracy_plot(arms: Mapping[str, Entry], lead: str | None) -> Plot | None:
    marks = [_mark(name, entry, lead) for name, entry in arms.items() if entry.get("accuracy") is not None]
    if not marks:
        return None
    for name, entry in arms.items():
        lenient = lenient_of(entry)
        if lenient is not None and lenient.get("accuracy") is not None:
            low, high = lenient.get("ci95") or (None, None)
            marks.append(Mark(f"{name.replace('_', ' ')}, lenient", lenient["accuracy"], low=low, high=high, style=3))
    note = "Share of right answers on the test split; lines are 95 % bootstrap intervals by question."
    return Plot("Accuracy", note, dots(marks, title="Accuracy of each arm with its 95 % interval"))


def latency_plot(arms: Mapping[str, Entry], lead: str | None) -> Plot | None:
    """Accuracy against mean seconds."""
    marks = []
    for name, entry in arms.items():
        seconds = (entry.get("latency_s") or {}).get("mean")
        if entry.get("accuracy") is not None and seconds:
            marks.append(_mark(name, entry, lead, x=seconds))
    if len(marks) < 2:
        return None
    note = "Mean wall seconds of an episode among all that ran at once; calls that the cache answered take none."
    svg = scatter(marks, title="Accuracy against mean latency of each arm", x_name="seconds, mean")
    return Plot("Accuracy and latency", note, svg)


def samples_plot(arms: Mapping[str, Entry]) -> Plot | None:
    """sc@k and pass@k over k, of the arms that were sampled more than once: the first six lines."""
    found: list[Line] = []
    for name, entry in arms.items():
        style = 1 + len({line.style for line in found})
        for label, key, dashed in (("sc@k", "sc_at_k", False), ("pass@k", "pass_at_k", True)):
            values = {int(k): value for k, value in (entry.get(key) or {}).items() if value is not None}
            if len(values) > 1:
                marks = tuple(Mark(f"{name} {label}", value, x=k) for k, value in sorted(values.items()))
                found.append(Line(f"{name.replace('_', ' ')}, {label}", marks, style, dashed))
    if not found:
        return None
    svg = lines(found[:MOST_LINES], title="Self-consistency and pass@k over the number of samples", x_name="k samples")
    note = "sc@k: the answer with most votes among k samples; pass@k: at least one of k is right."
    return Plot("More samples", note, svg)


def scaling_plot(sized: Iterable[Sized]) -> Plot | None:
    """Accuracy over the size of the skill pool: one line for each benchmark and policy with at least two sizes."""
    series: dict[str, dict[int, Entry]] = {}
    for one in sized:
        if one.entry.get("accuracy") is not None:
            series.setdefault(one.series, {}).setdefault(one.skills, one.entry)
    found = [
        Line(name, tuple(_mark(f"{name}, N = {n}", sizes[n], None, x=n) for n in sorted(sizes)), 1 + place % 6)
        for place, (name, sizes) in enumerate(series.items())
        if len(sizes) > 1
    ]
    if not found:
        return None
    svg = lines(
        found[:MOST_LINES], title="Accuracy over the number of Level-1 skills", x_name="N, Level-1 skills in the pool"
    )
    left_out = f" Only the first {MOST_LINES} of {len(found)} lines are drawn." if len(found) > MOST_LINES else ""
    return Plot("N-scaling", f"The same policy with skill pools of different size; 95 % intervals.{left_out}", svg)


def apart(sized: Iterable[Sized]) -> list[Sized]:
    """Arms that may call other experts stand on lines of their own, for more experts are not more skills."""
    every = list(sized)
    teams: dict[str, list[tuple[str, ...]]] = {}
    for one in every:
        if one.experts not in teams.setdefault(one.series, []):
            teams[one.series].append(one.experts)

    def line(one: Sized) -> str:
        others = teams[one.series]
        if len(others) == 1:
            return one.series
        same = [team for team in others if len(team) == len(one.experts)]
        number = "" if len(same) == 1 else f" ({same.index(one.experts) + 1})"
        return f"{one.series}, {len(one.experts) or '?'} experts{number}"

    return [replace(one, series=line(one)) for one in every]


def skill_counts(config: Mapping[str, Any], parts: Parts | None) -> dict[str, tuple[str, int, tuple[str, ...]]]:
    """Arm -> (its policy, number of Level-1 skills and names of the experts that it may call), from a run's
    configuration and the names in its registry. Arms without a policy or without a pool are left out, as are those with
    all skills of a registry that is not known."""
    found = {}
    for name, arm in (config.get("arms") or {}).items():
        if arm.get("kind") != "policy" or arm.get("without"):
            continue
        pool = arm.get("pool") or {}
        whole = None if parts is None else len(parts.skills)
        count = len(pool["skills"]) if pool.get("skills") else whole
        if count is not None:
            experts = pool.get("experts") or (() if parts is None else parts.experts)
            found[name] = (str(arm.get("policy")), count, tuple(sorted(normalise(str(one)) for one in experts)))
    return found


def drawn(plots: Sequence[Plot | None]) -> list[Plot]:
    return [plot for plot in plots if plot is not None]


def _mark(name: str, entry: Entry, lead: str | None, x: float = 0.0) -> Mark:
    low, high = entry.get("ci95") or (None, None)
    return Mark(name.replace("_", " "), entry["accuracy"], x, low, high, 1 if name == lead else 2)
