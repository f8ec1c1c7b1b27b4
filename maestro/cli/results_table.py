"""The figures of an evaluation on a terminal of 80 columns: a line for each arm, and the benchmark's own groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from registry.errors import UserFault

MOST_GROUPS = 40
"""Lines; the rest is in results.json."""
_WIDE = 5
"""Arms beside each other in the table of groups."""


def tell_results(console: Console, results: Mapping[str, Any]) -> None:
    """Print everything but what is particular to a start: the arms, the groups, what was left out."""
    console.print(results_table(results))
    console.print(legend(results), style="dim", markup=False, highlight=False)
    for table in group_tables(results):
        console.print(table)
    for line in remarks(results):
        console.print(line, style="yellow", markup=False, highlight=False)


def tell_unread(console: Console, why: UserFault | None) -> None:
    """Say why a report has no pictures, where it has none."""
    if why is None:
        return
    for line in (
        f"The report has no pictures, as the rows of the benchmark cannot be read:\n  {why}",
        "Numbers, plots and texts are whole. `maestro evaluate report` adds the pictures once the data is back; if it "
        "has moved, with --data-root.",
    ):
        console.print(line, style="yellow", markup=False, highlight=False)


def results_table(results: Mapping[str, Any]) -> Table:
    """Every arm on the test split. `len.` and `avg.` are there only where an arm's accuracy by the lenient rule, or the
    benchmark's published average (with its own interval), is another number than its accuracy."""
    arms = dict(_arms(results))
    name = str(results.get("title") or results["benchmark"])
    title = f"{name}: {results['rows']['test']} test questions, seed {results['seed']}"
    table = Table(title=escape(title), box=None, padding=(0, 0, 0, 1))
    table.add_column("arm", overflow="fold")
    shown = _columns(results)
    for title, _, _ in shown:
        table.add_column(title, justify="right", no_wrap=True)
    for name, entry in arms.items():
        cells = [cell(entry) for _, cell, _ in shown]
        table.add_row(escape(name), *cells, style="bold" if name == "after" else None)
    return table


def legend(results: Mapping[str, Any]) -> str:
    """What the short titles of the table's columns stand for, of those that are shown."""
    return "; ".join(f"{title}: {meaning}" for title, _, meaning in _columns(results) if meaning) + "."


def group_tables(results: Mapping[str, Any]) -> Iterator[Table]:
    """For each of the benchmark's groupings: accuracy of every arm on every label, a few arms beside each other."""
    arms = list(_arms(results))
    names = sorted({name for _, entry in arms for name in entry.get("groupings") or {}})
    for name in names:
        for start in range(0, len(arms), _WIDE):
            yield _group_table(name, arms[start : start + _WIDE])


def remarks(results: Mapping[str, Any]) -> Iterator[str]:
    """Rows that were left out, what the two rules disagree on, and what waits for the judge model."""
    skipped = results.get("skipped") or {}
    if skipped:
        reasons = ", ".join(f"{reason} {count}" for reason, count in skipped.items())
        yield f"{sum(skipped.values())} rows could not be used and are in no number: {reasons}."
    differ = {name: entry["lenient"]["differ"] for name, entry in _arms(results) if _differs(entry)}
    if differ:
        rules = results["scorer"]
        counts = ", ".join(f"{name} {count}" for name, count in differ.items())
        yield f"{rules['lenient']} (len.) takes answers that {rules['official']} (acc.) does not: {counts}."
    judge = results["scorer"].get("judge")
    if judge and judge["ungraded"]:
        yield (
            f"{judge['ungraded']} answers wait for the judge {judge['model']}, neither right nor wrong "
            f"({judge['why']}). --retry-errors asks it again, no episode is repeated."
        )


def _columns(results: Mapping[str, Any]) -> list[tuple[str, Callable[[Mapping[str, Any]], str], str]]:
    """Title, cell of an arm and meaning (empty where the title says it, or a remark does) of each column shown."""
    arms = dict(_arms(results))
    own = any(map(_own_average, arms.values()))
    columns = [
        ("acc.", lambda entry: _number(entry["accuracy"], 3), "", True),
        ("95 %", _interval, "", True),
        ("len.", _lenient, "", any(map(_differs, arms.values()))),
        ("avg.", lambda entry: _number(entry.get("average"), 3), "", own),
        ("95 %", lambda entry: _range(entry.get("average_ci95")), "", own and _has(arms, "average_ci95")),
        (
            "greedy",
            lambda entry: _number(entry["greedy"], 3) if "greedy" in entry else "",
            "accuracy at temperature 0 (rules have none)",
            _has(arms, "greedy"),
        ),
        (
            "unseen",
            lambda entry: _number(entry["unseen"], 3),
            "accuracy under wordings never seen",
            bool(results.get("unseen")),
        ),
        ("n", lambda entry: str(entry["n"]), "", True),
        ("err.", lambda entry: str(entry["errors"]), "could not run or be scored, neither right nor wrong", True),
        ("malf.", lambda entry: _number(entry["malformed_rate"], 3), "share with a malformed turn", True),
        ("calls", lambda entry: _number(entry["calls"], 2), "mean calls to experts", True),
        (
            "p50 s",
            lambda entry: _number(entry["latency_s"]["p50"], 2),
            "median seconds of an episode (cached calls take none)",
            True,
        ),
    ]
    return [(title, cell, meaning) for title, cell, meaning, wanted in columns if wanted]


def _group_table(grouping: str, arms: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    table = Table(box=None, padding=(0, 0, 0, 1))
    table.add_column(escape(grouping), overflow="fold")
    found = [(entry.get("groupings") or {}).get(grouping, {}).get("groups", {}) for _, entry in arms]
    labels = sorted({label for groups in found for label in groups})
    table.add_column("n", justify="right", no_wrap=True)
    for name, _ in arms:
        table.add_column(escape(name), justify="right", overflow="fold")
    for label in labels[:MOST_GROUPS]:
        cells = [_number(groups.get(label, {}).get("accuracy"), 3) for groups in found]
        n = max(groups.get(label, {}).get("n", 0) for groups in found)
        table.add_row(escape(label), str(n), *cells)
    if len(labels) > MOST_GROUPS:
        table.add_row(f"... and {len(labels) - MOST_GROUPS} more", "", *("" for _ in arms))
    return table


def _arms(results: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    unseen = results.get("unseen") or {}
    beside = {name: unseen.get(name) for name in ("before", "after")} | dict(unseen.get("baselines") or {})
    named = [(name, results[name]) for name in ("before", "after") if results.get(name)]
    for name, entry in [*named, *results["baselines"].items()]:
        yield name, {**entry, "unseen": (beside.get(name) or {}).get("accuracy")}


def _differs(entry: Mapping[str, Any]) -> bool:
    return bool((entry.get("lenient") or {}).get("differ"))


def _lenient(entry: Mapping[str, Any]) -> str:
    return _number((entry.get("lenient") or {}).get("accuracy"), 3)


def _own_average(entry: Mapping[str, Any]) -> bool:
    average, accuracy = entry.get("average"), entry["accuracy"]
    return average is not None and accuracy is not None and abs(average - accuracy) >= 5e-4


def _has(arms: Mapping[str, Mapping[str, Any]], key: str) -> bool:
    return any(key in entry for entry in arms.values())


def _interval(entry: Mapping[str, Any]) -> str:
    return _range(entry["ci95"])


def _range(ci95: Sequence[float] | None) -> str:
    return "" if not ci95 else f"{ci95[0]:.2f}-{ci95[1]:.2f}"


def _number(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"
