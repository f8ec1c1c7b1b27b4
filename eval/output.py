"""What an evaluation leaves behind: ``results.json``, ``report.html`` and figures, all made from the journal.

The one idea: no number is computed here that is not in ``results.json``; the report only shows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.benchmarks.spec import Benchmark
from eval.config import VALIDATION, EvalConfig
from eval.facts import Facts
from eval.figures import draw_matrix, draw_summary
from eval.journal import Journal
from eval.matrix import Matrix
from eval.parts import Parts
from eval.report.bundle import Bundle
from eval.report.cards import Card, card_of, clean
from eval.report.choice import choose
from eval.report.failures_view import Ready, failures_view, ready
from eval.report.overview import arms_of
from eval.report.page import Material, write_report
from eval.report.plots import Sized, apart, skill_counts
from eval.report.thumbnails import MOST, thumbnail, within
from eval.results import HEADLINE, build_results, write_results
from eval.rows import Rows
from eval.scores import FILE as SCORES
from eval.scores import write_scores
from eval.splits import skipped
from eval.unread_rows import Unread
from registry.errors import UserFault
from rewards.format import format_reward
from rewards.turns import policy_turns

MOST_QUESTIONS = 20_000
"""Rows whose wordings the failure page looks at."""


@dataclass(frozen=True)
class Outputs:
    """Paths of the files, and the results themselves. ``unread``: why the rows could not be read, so that the report
    has no pictures."""

    results: Mapping[str, Any]
    results_path: Path
    report_path: Path
    figures: tuple[Path, ...]
    unread: UserFault | None = None


def write_outputs(
    config: EvalConfig,
    folder: Path,
    journal: Journal,
    splits: Sequence[Rows],
    matrix: Matrix | None,
    *,
    seconds: Mapping[str, float],
    versions: Mapping[str, str],
    parts: Parts | None = None,
    unread: Unread | None = None,
    saved: Benchmark | None = None,
) -> Outputs:
    """Make every file from the journal's trajectories of these rows; lines of other rows (a larger
    ``--limit`` before) are left out of numbers and report.

    Args:
        unread: where these rows are known from the folder alone.
        saved: the benchmark as the run began, for where its file is gone.
    """
    tests = [rows for rows in splits if rows.split != VALIDATION]
    wanted = {row_id for rows in tests for row_id in rows.ids}
    asks = {row_id: question for rows in tests for row_id, question in rows.clusters.items()}
    facts = [_of_question(fact, asks) for fact in journal.facts.values() if fact.row_id in wanted]
    results = build_results(
        config,
        facts,
        rows={rows.split: len(rows.tasks) for rows in splits} if unread is None else unread.counts,
        shared={row for rows in tests for row in rows.shared},
        matrix=matrix,
        training=_training(config),
        seconds=seconds,
        versions=versions,
        skipped=skipped(tests),
        saved=saved,
    )
    if unread is not None:
        results["shared_wordings"] = {name: one for name, one in unread.shared.items() if name in config.arms}
    results_path = write_results(results, folder / "results.json")
    write_scores(facts, folder / SCORES)
    figures = [draw_summary(results, folder / "summary.png")]
    if matrix is not None:
        figures.append(draw_matrix(matrix, folder / "matrix.png"))
    if parts is None and matrix is not None:  # folders of earlier versions
        parts = Parts(matrix.experts, matrix.skills)
    material = _material(config, journal, tests, facts, matrix, results, parts)
    why = None if unread is None else unread.why
    report_path = write_report(replace(material, unread=why), folder / "report.html")
    return Outputs(results, results_path, report_path, tuple(figures), why)


def _of_question(fact: Facts, asks: Mapping[str, str]) -> Facts:
    """Journals written before rows had a question's key lack it."""
    key = asks.get(fact.row_id)
    return fact if key is None or fact.cluster is not None else replace(fact, cluster=key)


def _material(
    config: EvalConfig,
    journal: Journal,
    tests: Sequence[Rows],
    facts: Sequence[Facts],
    matrix: Matrix | None,
    results: Mapping[str, Any],
    parts: Parts | None,
) -> Material:
    """Cards may take half of ``report.megabytes``, pictures what they leave of the whole."""
    order = [name for name in reversed(HEADLINE) if name in config.arms]
    order += [name for name in config.arms if name not in HEADLINE]
    by_key = {fact.key: fact for fact in facts}
    limit = round(1e6 * config.report.megabytes)
    bundle = Bundle(limit // 2)
    for key in choose(facts, lead=order[0], arms=order, rows_per_family=config.report.rows_per_family):
        if not bundle.add(_card(journal, by_key[key])):
            break
    curves = None if config.training is None else config.training / "curves.png"
    analysed = ready(facts, order)
    failures = None
    if analysed is not None:
        questions = _questions(journal, analysed)
        failures = failures_view(analysed, matrix, questions, lambda key: _card(journal, by_key[key]), bundle)
    arms, pools = arms_of(results), skill_counts(config.model_dump(mode="json"), parts)
    return Material(
        title=config.report.title,
        results=results,
        matrix=matrix,
        bundle=bundle,
        total=len(facts),
        pictures=within(bundle.pictures, _thumbnails(bundle, tests), limit - bundle.bytes),
        failures=failures,
        curves=curves.read_bytes() if curves is not None and curves.is_file() else None,
        sized=apart(
            Sized(policy, count, arms[name], experts)
            for name, (policy, count, experts) in pools.items()
            if name in arms
        ),
        limit=limit,
    )


def _thumbnails(bundle: Bundle, tests: Sequence[Rows]) -> dict[str, str]:
    """Of the first pictures of the cards, at most ``MOST``; a row that cannot be read again has none."""
    wanted = set(bundle.pictures[:MOST])
    made: dict[str, str] = {}
    for rows in tests:
        for task in rows.find(bundle.rows):
            for picture in task.pictures:
                if picture.sha256 in wanted and picture.sha256 not in made:
                    made[picture.sha256] = thumbnail(picture)
            if len(made) == len(wanted):
                return made
    return made


def _questions(journal: Journal, analysed: Ready) -> dict[str, str]:
    """Row id -> question, of the leading arm's first `MOST_QUESTIONS` rows."""
    keys = {fact.row_id: fact.key for fact in analysed.facts if fact.arm == analysed.lead.arm}
    first = sorted(keys)[:MOST_QUESTIONS]
    return {row_id: clean(journal.read(keys[row_id])["trajectory"]["question"]) for row_id in first}


def _card(journal: Journal, facts: Facts) -> Card:
    record = journal.read(facts.key)
    return card_of(record, facts, _reward(record))


def _reward(record: Mapping[str, Any]) -> str:
    """The reward as a sentence: the journal's score, for only the benchmark's file knows its rule, and the form."""
    score, trajectory = record["score"], record["trajectory"]
    if score is None:
        unjudged = (record.get("judge") or {}).get("why")
        why = record.get("unscored") or (f"ungraded, {unjudged}" if unjudged else f"stopped by {trajectory['stop']}")
        return f"no reward: {why}"
    form, why = format_reward(policy_turns(trajectory))
    value = float(score["value"])
    said = f"answer {value:g} ({score.get('explanation') or ''}); format {form:g} ({why})"
    return f"{value + form:g}: {said}"


def _training(config: EvalConfig) -> dict[str, Any]:
    """``grpo_steps`` and ``seconds`` of the training run, as far as its summary tells."""
    if config.training is None:
        return {}
    try:
        summary = json.loads((config.training / "train.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(summary, dict):
        return {}
    seconds = summary.get("seconds")
    return {"grpo_steps": summary.get("steps"), "seconds": seconds if isinstance(seconds, dict) else {}}
