"""Several evaluations on one page: a table of arms by benchmarks, each benchmark's groups, and N-scaling.

The one idea: nothing is run and nothing is computed anew; each run's `results.json` is read, and its `eval.json` for
the skill pools of its arms.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from eval.parts import Parts, parts_in, parts_of_pairs
from eval.report.overview import arms_of, average_of, group_tables, lead_of, lenient_of, subtitle
from eval.report.page import render_page
from eval.report.plots import (
    Sized,
    accuracy_plot,
    apart,
    drawn,
    latency_plot,
    samples_plot,
    scaling_plot,
    skill_counts,
)
from eval.whole_file import write_whole
from registry.errors import UserFault

MOST_BYTES = 200_000_000


@dataclass(frozen=True)
class Run:
    """One run folder. ``parts``: the names in its registry, where the folder tells them."""

    folder: Path
    results: Mapping[str, Any]
    config: Mapping[str, Any]
    parts: Parts | None

    @property
    def benchmark(self) -> str:
        return str(self.results.get("title") or self.results["benchmark"])


def read_run(folder: Path) -> Run:
    """Raises UserFault where the folder holds no finished evaluation."""
    results = _read(folder / "results.json")
    needed = ("benchmark", "baselines", "rows", "shared_wordings", "seed", "errors", "expected", "trajectories")
    missing = [key for key in needed if key not in results]
    if missing:
        raise _no_run(folder / "results.json", f"it lacks {missing[0]!r}")
    asked = _read(folder / "eval.json") if (folder / "eval.json").is_file() else {}
    matrix = _read(folder / "matrix.json") if (folder / "matrix.json").is_file() else {}
    parts = parts_in(asked) or parts_of_pairs(matrix.get("cells") or {})
    return Run(folder, results, asked.get("config") or {}, parts)


def render_runs(runs: Sequence[Run], title: str) -> str:
    """The page. Runs of the same benchmark are told apart by their folders."""
    labels = _labels(runs)
    arms = list(dict.fromkeys(name for run in runs for name in arms_of(run.results)))
    sized = apart(one for run in runs for one in _sized(run))
    distinct = len({run.benchmark for run in runs}) == len(runs)
    page = {
        "title": title,
        "subtitle": f"{len(runs)} evaluations",
        "labels": labels,
        "rows": [_row(arm, runs, distinct) for arm in arms],
        "distinct": distinct,
        "scaling": drawn([scaling_plot(sized)]),
        "sizes": sorted({(one.series, one.skills, one.entry["accuracy"]) for one in sized if _known(one)}),
        "benchmarks": [_benchmark(run, label) for run, label in zip(runs, labels, strict=True)],
    }
    return render_page("runs.html.jinja", page, {})


def write_runs(folders: Iterable[Path], path: Path, *, title: str = "Evaluations") -> Path:
    """Raises UserFault for a folder without an evaluation, and where the file cannot be written."""
    runs = [read_run(folder) for folder in folders]
    try:
        text = render_runs(runs, title)
    except (KeyError, TypeError, ValueError, AttributeError, UndefinedError) as error:
        where = ", ".join(str(run.folder) for run in runs)
        raise UserFault(
            f"the results of a run have not the expected shape: {error}",
            where=where,
            fix="`maestro evaluate report RUN` makes them anew",
        ) from error
    try:
        write_whole(path, text)
    except OSError as error:
        raise UserFault(f"cannot write: {error.strerror or error}", where=str(path)) from error
    return path


def _benchmark(run: Run, label: str) -> dict[str, Any]:
    arms, lead, results = arms_of(run.results), lead_of(run.results), run.results
    return {
        "label": label,
        "subtitle": subtitle(results),
        "folder": run.folder.name,
        "scorer": {"official": None, "lenient": None, **(results.get("scorer") or {})},
        "skipped": results.get("skipped") or {},
        "errors": results["errors"],
        "missing": results["expected"] - results["trajectories"],
        "groups": group_tables(results),
        "plots": drawn([accuracy_plot(arms, lead), latency_plot(arms, lead), samples_plot(arms)]),
    }


def _row(arm: str, runs: Sequence[Run], distinct: bool) -> dict[str, Any]:
    entries = [arms_of(run.results).get(arm) for run in runs]
    cells = [
        None
        if entry is None or entry.get("accuracy") is None
        else {
            "accuracy": entry["accuracy"],
            "ci95": entry.get("ci95"),
            "lenient": (lenient_of(entry) or {}).get("accuracy"),
            "average": average_of(entry),
            "average_ci95": entry.get("average_ci95"),
            "n": entry["n"],
        }
        for entry in entries
    ]
    known = [cell["accuracy"] for cell in cells if cell]
    macro = sum(known) / len(known) if distinct and known and len(known) == len(runs) else None
    return {"title": arm.replace("_", " "), "cells": cells, "macro": macro}


def _sized(run: Run) -> list[Sized]:
    arms = arms_of(run.results)
    counts = skill_counts(run.config, run.parts)
    return [
        Sized(f"{run.benchmark}, {policy}", count, arms[name], experts)
        for name, (policy, count, experts) in counts.items()
        if name in arms
    ]


def _known(one: Sized) -> bool:
    return one.entry.get("accuracy") is not None


def _labels(runs: Sequence[Run]) -> list[str]:
    names = [run.benchmark for run in runs]
    return [
        f"{name} ({run.folder.name})" if names.count(name) > 1 else name for name, run in zip(names, runs, strict=True)
    ]


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _no_run(path, f"it is larger than {MOST_BYTES} bytes")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _no_run(path, str(error)) from error
    if not isinstance(found, dict):
        raise _no_run(path, "it holds no JSON object")
    return found


def _no_run(path: Path, why: str) -> UserFault:
    return UserFault(
        f"this is no evaluation that can be read: {why}",
        where=str(path),
        fix="give folders that `maestro evaluate` finished (their --run); `maestro evaluate report RUN` makes one anew",
    )
