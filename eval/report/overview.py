"""What the report says of arms and groups: the content of `results.json`, arranged for tables and tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Entry = Mapping[str, Any]
HEADLINE = ("after", "before")


def arms_of(results: Mapping[str, Any]) -> dict[str, Entry]:
    """Arm -> its entry on the test split, the headline first."""
    named = {name: results[name] for name in HEADLINE if results.get(name)}
    return {**named, **results["baselines"]}


def unseen_of(results: Mapping[str, Any]) -> dict[str, Entry]:
    """The same for the split of unseen wordings; empty where there is none."""
    unseen = results.get("unseen")
    return arms_of({"baselines": {}, **unseen}) if unseen else {}


def lead_of(results: Mapping[str, Any]) -> str | None:
    """The arm that stands first: the trained policy, else the untrained one, else the first of the configuration."""
    return next(iter(arms_of(results)), None)


def subtitle(results: Mapping[str, Any]) -> str:
    title = results.get("title") or results["benchmark"]
    parts = [f"benchmark {title}", f"{results['rows'].get('test', 0)} test questions"]
    if results["rows"].get("test_unseen"):
        parts.append(f"{results['rows']['test_unseen']} under unseen wordings")
    if results.get("grpo_steps"):
        parts.append(f"{results['grpo_steps']} GRPO steps")
    return ", ".join([*parts, f"seed {results['seed']}"])


def tiles(results: Mapping[str, Any]) -> list[dict[str, str]]:
    """The few numbers on top."""
    after, before, baselines = results.get("after"), results.get("before"), results["baselines"]
    found: list[dict[str, str]] = []

    def tile(label: str, value: str, note: str) -> None:
        found.append({"label": label, "value": value, "note": note})

    if not after and not before:
        for name, entry in list(baselines.items())[:4]:
            tile(name.replace("_", " "), share(entry["accuracy"]), interval(entry))
        return found
    if after:
        tile("accuracy after training", share(after["accuracy"]), interval(after))
    if before:
        tile("before", share(before["accuracy"]), interval(before))
    gain = results.get("gain")
    if gain:
        low, high = gain["ci95"]
        note = f"paired by question, 95 %: {100 * low:.1f} to {100 * high:.1f}"
        tile("gain, points", f"{100 * gain['difference']:+.1f}", note)
    oracle = (baselines.get("oracle") or {}).get("accuracy")
    if after and oracle and after["accuracy"] is not None:
        note = f"oracle, a right pair for each question: {share(oracle)}"
        tile("of the oracle's accuracy", share(after["accuracy"] / oracle), note)
    if baselines.get("keyword"):
        tile("keyword routing", share(baselines["keyword"]["accuracy"]), interval(baselines["keyword"]))
    unseen = (results.get("unseen") or {}).get("after")
    if unseen:
        tile("unseen wordings, after", share(unseen["accuracy"]), interval(unseen))
    if after:
        tile("malformed after", share(after["malformed_rate"]), "episodes with a malformed turn")
        tile("question passed on as it is", share(after["copied_share"]), "of the calls after training")
    return found


def arm_rows(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table of all arms. ``lenient`` is filled only where a lenient rule scored something differently."""
    unseen, shared, lead = unseen_of(results), results["shared_wordings"], lead_of(results)
    return [
        {
            "title": name.replace("_", " "),
            "lead": name == lead,
            "entry": entry,
            "lenient": lenient_of(entry),
            "average": average_of(entry),
            "average_ci95": entry.get("average_ci95"),
            "unseen": unseen.get(name),
            "shared": shared.get(name),
        }
        for name, entry in arms_of(results).items()
    ]


def lenient_of(entry: Entry) -> Mapping[str, Any] | None:
    """The lenient rule's figures where they differ from the official ones."""
    lenient = entry.get("lenient")
    return lenient if isinstance(lenient, Mapping) and lenient.get("differ") else None


def average_of(entry: Entry) -> float | None:
    """The benchmark's own headline number where it is another than the accuracy."""
    average = entry.get("average")
    value = average.get("value") if isinstance(average, Mapping) else average
    return None if value is None or value == entry.get("accuracy") else value


def group_tables(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One table for the benchmark's groups, then one for each of its other groupings: groups by arms. ``macro`` is the
    mean over groups, ``micro`` that over trajectories."""
    arms = arms_of(results)
    tables = [_group_table("group", arms, {name: _own_groups(entry) for name, entry in arms.items()}, "macro")]
    groupings = sorted({name for entry in arms.values() for name in entry.get("groupings") or {}})
    for grouping in groupings:
        parts = {name: (entry.get("groupings") or {}).get(grouping) or {} for name, entry in arms.items()}
        table = _group_table(
            grouping.replace("_", " "), arms, {n: p.get("groups") or {} for n, p in parts.items()}, None
        )
        if table is not None:
            table["macro"] = [parts[name].get("macro") for name in arms]
        tables.append(table)
    return [table for table in tables if table is not None]


def _own_groups(entry: Entry) -> Mapping[str, Any]:
    """Groups of an entry; those written before there were intervals have their accuracies alone."""
    plain = {name: {"accuracy": value} for name, value in (entry.get("families") or {}).items()}
    return entry.get("groups") or plain


def _group_table(
    title: str, arms: Mapping[str, Entry], groups: Mapping[str, Mapping[str, Any]], macro: str | None
) -> dict[str, Any] | None:
    names = sorted({name for found in groups.values() for name in found})
    if not names or names == [""]:
        return None
    rows = []
    for name in names:
        cells = [groups[arm].get(name) for arm in arms]
        known = [cell["accuracy"] for cell in cells if cell and cell.get("accuracy") is not None]
        rows.append({
            "name": name or "(none)",
            "n": max((cell.get("n") or 0 for cell in cells if cell), default=0),
            "cells": cells,
            "best": max(known) if len(known) > 1 else None,
        })  # fmt: skip
    return {
        "title": title,
        "arms": [arm.replace("_", " ") for arm in arms],
        "rows": rows,
        "macro": [entry.get(macro) for entry in arms.values()] if macro else [],
        "micro": [entry.get("accuracy") for entry in arms.values()],
    }


def share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def interval(entry: Entry) -> str:
    if not entry.get("ci95"):
        return f"{entry['n']} questions"
    low, high = entry["ci95"]
    return f"95 %: {100 * low:.1f} to {100 * high:.1f}, {entry['n']} questions"


def filters(cards: Sequence[Sequence[Any]], strings: Sequence[str]) -> dict[str, list[str]]:
    """The values that the trajectory browser offers, from the cards' own fields (see `eval.report.bundle`)."""

    def of(field: int) -> list[str]:
        return [str(strings[index]) for index in dict.fromkeys(card[field] for card in cards)]

    def among(field: int) -> list[str]:
        return sorted({str(strings[index]) for card in cards for index in card[field]})

    return {
        "arm": of(0),
        "outcome": ["right", "wrong", "error", *(["rules differ"] if any(strings[card[10]] for card in cards) else [])],
        "family": sorted(of(2)),
        "pair": among(15),
        "stop": sorted(of(4)),
        "split": sorted(of(3)),
        "group": among(16),
    }
