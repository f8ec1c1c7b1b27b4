"""``results.json``: the numbers of an evaluation in the shape that other programs read.

The one idea: built from facts alone, by split; the headline keys (``before``, ``after``, ``baselines``)
speak of the test split under wordings seen in training, and ``unseen`` repeats them for the other split.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.benchmarks.spec import Benchmark
from eval.config import TEST, UNSEEN, EvalConfig
from eval.facts import Facts
from eval.judge_figures import judge_figures
from eval.matrix import Matrix
from eval.metrics import summarise
from eval.own_figures import labels_of, lenient_of, own_figures
from eval.statistics.bootstrap import interval
from eval.statistics.groups import accuracy, by_group, groups, macro_average
from eval.statistics.macro import macro_interval
from eval.statistics.paired import compare, holm, paired_difference
from eval.statistics.routing import entropy_bits, pair_counts, routing
from eval.statistics.samples import drawn_questions, questions
from eval.variants import samples_of, variants
from eval.whole_file import write_whole

HEADLINE = ("before", "after")
Labels = Mapping[str, Mapping[str, str]]
"""Row id -> name of a grouping ("answer_type") -> the row's group in it ("open")."""


def build_results(
    config: EvalConfig,
    facts: Iterable[Facts],
    *,
    rows: Mapping[str, int],
    shared: Collection[str] = (),
    matrix: Matrix | None,
    training: Mapping[str, Any],
    seconds: Mapping[str, float],
    versions: Mapping[str, str],
    labels: Labels | None = None,
    skipped: Mapping[str, int] | None = None,
    saved: Benchmark | None = None,
) -> dict[str, Any]:
    """All numbers.

    Args:
        rows: questions of each split in this evaluation.
        shared: ids of rows whose wording serves several families.
        training: ``grpo_steps`` and ``seconds`` of the training run, as far as known.
        seconds: wall seconds of each phase of the evaluation.
        labels: groupings of the rows besides those that the benchmark has; each is measured for every arm.
        skipped: rows that could not be used, by reason.
        saved: the benchmark as it was, for where its file cannot be read now.
    """
    by_arm: dict[tuple[str, str], list[Facts]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: fact.key):  # so that the order of a journal's lines plays no part
        by_arm[fact.split, fact.arm].append(fact)
    main = {key: by_arm.get((TEST, key), []) for key in _keys(config)}
    labels = labels or {}
    benchmark = config.definition_if_any() or saved
    headline = _arms(config, by_arm, TEST, labels, benchmark)
    errors = sum(not fact.valid for found in by_arm.values() for fact in found)
    done = sum(len(found) for found in by_arm.values())
    expected = sum(
        samples_of(config, variant) * rows.get(split, 0) for variant in variants(config) for split in (TEST, UNSEEN)
    )
    after = headline.get("after") or {}
    results: dict[str, Any] = {
        "benchmark": config.benchmark if benchmark is None else benchmark.name,
        "title": config.benchmark if benchmark is None else benchmark.title,
        "scorer": _rules(config, benchmark, [fact for found in by_arm.values() for fact in found]),
        "skipped": dict(skipped or {}),
        "average": {name: entry["average"] for name, entry in headline.items()},
        "seed": config.seed,
        "status": "complete" if errors == 0 and done == expected else "incomplete",
        "errors": errors,
        "trajectories": done,
        "expected": expected,
        "rows": dict(rows),
        "before": headline.get("before"),
        "after": headline.get("after"),
        "gain": _gain(config, main),
        "comparisons": _comparisons(config, main),
        "baselines": {name: entry for name, entry in headline.items() if name not in HEADLINE},
        "malformed_rate_after": after.get("malformed_rate"),
        "copied_share_after": after.get("copied_share"),
        "families": _families(main),
        "shared_wordings": _shared(config, main, shared),
        "unseen": _split(_arms(config, by_arm, UNSEEN, labels, benchmark)) if rows.get(UNSEEN) else None,
        "matrix": None if matrix is None else {k: v for k, v in matrix.to_json().items() if k != "cells"},
        "grpo_steps": training.get("grpo_steps"),
        "seconds": {
            **dict(training.get("seconds") or {}),
            **{f"evaluate: {name}": round(value, 2) for name, value in seconds.items()},
        },
        "versions": dict(versions),
    }
    return results


def write_results(results: Mapping[str, Any], path: Path) -> Path:
    """Write atomically. Raises OSError."""
    return write_whole(path, json.dumps(results, indent=2, ensure_ascii=False) + "\n")


def _keys(config: EvalConfig) -> list[str]:
    return [variant.key for variant in variants(config)]


def _rules(config: EvalConfig, benchmark: Benchmark | None, facts: Sequence[Facts]) -> dict[str, Any]:
    """Names of the rules by which answers are scored; ``judge`` where the benchmark's procedure asks a model, or one
    was asked."""
    if benchmark is None:
        rules: dict[str, Any] = {"official": config.benchmark, "lenient": None}
    else:
        rules = {"official": benchmark.scorer.official, "lenient": benchmark.scorer.lenient}
    asked = any(fact.judged is not None for fact in facts)
    asks = asked or (benchmark is not None and benchmark.scorer.judge)
    return rules | ({"judge": judge_figures(config.judge, facts)} if asks else {})


def _arms(
    config: EvalConfig,
    by_arm: Mapping[tuple[str, str], list[Facts]],
    split: str,
    labels: Labels,
    benchmark: Benchmark | None,
) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    for variant in variants(config):
        found = by_arm.get((split, variant.key), [])
        summary = summarise(found, seed=config.seed, ks=config.pass_at if variant.temperature > 0 else (1,))
        if variant.headline:
            entries[variant.arm] = _entry(summary.to_json(), found, config.seed, labels, benchmark)
        else:
            label = "greedy" if variant.temperature == 0 else f"t{variant.temperature:g}"
            entries[variant.arm][label] = summary.accuracy
            detail = _entry(summary.to_json(), found, config.seed, labels, benchmark)
            entries[variant.arm][f"{label}_detail"] = detail
    return entries


def _entry(
    summary: dict[str, Any], facts: Sequence[Facts], seed: int, labels: Labels, benchmark: Benchmark | None
) -> dict[str, Any]:
    pairs = {
        group: {"counts": counts, "entropy_bits": entropy_bits(counts)}
        for group, counts in pair_counts(fact for fact in facts if fact.valid).items()
        if counts
    }
    return {
        **summary,
        "lenient": lenient_of(facts, benchmark, seed=seed),
        **own_figures(facts, benchmark, seed=seed),
        "families": by_group(facts, accuracy),
        "groups": {name: group.to_json() for name, group in groups(facts, seed=seed).items()},
        "groupings": {name: _grouping(name, facts, seed, labels) for name in _groupings(facts, labels)},
        "pairs": pairs,
        "routing": routing(facts).to_json(),
    }


def _groupings(facts: Sequence[Facts], labels: Labels) -> list[str]:
    return sorted({name for fact in facts for name in labels_of(fact, labels)})


def _grouping(grouping: str, facts: Sequence[Facts], seed: int, labels: Labels) -> dict[str, Any]:
    """The groups of one grouping, with the macro average over them; rows without such a label are left out."""
    own = [fact for fact in facts if grouping in labels_of(fact, labels)]

    def label(fact: Facts) -> str:
        return labels_of(fact, labels)[grouping]

    found = groups(own, seed=seed, name=label)
    return {
        "groups": {name: group.to_json() for name, group in found.items()},
        "macro": macro_average(group.accuracy for group in found.values()),
        "macro_ci95": macro_interval(own, seed=seed, name=label),
    }


def _split(entries: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        **{name: entries.get(name) for name in HEADLINE},
        "baselines": {name: entry for name, entry in entries.items() if name not in HEADLINE},
    }


def _families(main: Mapping[str, list[Facts]]) -> dict[str, dict[str, float | None]]:
    values = {name: by_group(main.get(name, []), accuracy) for name in HEADLINE}
    groups = sorted({group for found in values.values() for group in found})
    return {group: {name: values[name].get(group) for name in HEADLINE} for group in groups}


def _shared(config: EvalConfig, main: Mapping[str, list[Facts]], shared: Collection[str]) -> dict[str, dict[str, Any]]:
    """Every arm on the test questions whose words alone cannot decide."""
    found = {}
    for arm in config.arms:
        facts = [fact for fact in main[arm] if fact.valid and fact.row_id in shared]
        if facts:
            found[arm] = {
                "accuracy": accuracy(facts),
                "n": len(questions(facts)),
                "ci95": interval(drawn_questions(facts), seed=config.seed),
            }
    return found


def _gain(config: EvalConfig, main: Mapping[str, list[Facts]]) -> dict[str, Any] | None:
    """After minus before on the questions that both answered."""
    found = paired_difference(main.get("before", []), main.get("after", []), seed=config.seed)
    return None if found is None else {"difference": found[0], "ci95": list(found[1])}


def _comparisons(config: EvalConfig, main: Mapping[str, list[Facts]]) -> dict[str, Any] | None:
    """Every arm against the named one on the questions that both answered, p corrected for their number."""
    against = config.report.compare_to or (HEADLINE[0] if HEADLINE[0] in config.arms else None)
    if against is None:
        return None
    found = {
        arm: compared
        for arm in config.arms
        if arm != against and (compared := compare(main[against], main[arm], seed=config.seed)) is not None
    }
    corrected = holm({arm: compared.p for arm, compared in found.items()})
    arms = {arm: {**compared.to_json(), "p_holm": corrected[arm]} for arm, compared in found.items()}
    return {"against": against, "arms": arms}
