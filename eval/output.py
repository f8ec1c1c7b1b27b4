"""What an evaluation leaves behind: ``results.json``, ``report.html`` and figures, all made from the journal.

The one idea: no number is computed here that is not in ``results.json``; the report only shows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.config import VALIDATION, EvalConfig
from eval.facts import Facts
from eval.figures import draw_matrix, draw_summary
from eval.journal import Journal
from eval.matrix import Matrix
from eval.report.cards import Card, card_of, choose
from eval.report.page import Material, write_report
from eval.results import HEADLINE, build_results, write_results
from eval.rows import Rows
from eval.scores import FILE as SCORES
from eval.scores import write_scores
from rewards import reward


@dataclass(frozen=True)
class Outputs:
    """Paths of the files, and the results themselves."""

    results: Mapping[str, Any]
    results_path: Path
    report_path: Path
    figures: tuple[Path, ...]


def write_outputs(
    config: EvalConfig,
    folder: Path,
    journal: Journal,
    splits: Sequence[Rows],
    matrix: Matrix | None,
    *,
    seconds: Mapping[str, float],
    versions: Mapping[str, str],
) -> Outputs:
    """Make every file from the journal's trajectories of these rows; lines of other rows (a larger
    ``--limit`` before) are left out of numbers and report."""
    tests = [rows for rows in splits if rows.split != VALIDATION]
    wanted = {task.row_id for rows in tests for task in rows.tasks}
    facts = [fact for fact in journal.facts.values() if fact.row_id in wanted]
    results = build_results(
        config,
        facts,
        rows={rows.split: len(rows.tasks) for rows in splits},
        shared={row for rows in tests for row in rows.shared},
        matrix=matrix,
        training=_training(config),
        seconds=seconds,
        versions=versions,
    )
    results_path = write_results(results, folder / "results.json")
    write_scores(facts, folder / SCORES)
    figures = [draw_summary(results, folder / "summary.png")]
    if matrix is not None:
        figures.append(draw_matrix(matrix, folder / "matrix.png"))
    material = _material(config, journal, tests, facts, matrix, results)
    report_path = write_report(material, folder / "report.html")
    return Outputs(results, results_path, report_path, tuple(figures))


def _material(
    config: EvalConfig,
    journal: Journal,
    tests: Sequence[Rows],
    facts: Sequence[Facts],
    matrix: Matrix | None,
    results: Mapping[str, Any],
) -> Material:
    order = [name for name in reversed(HEADLINE) if name in config.arms]
    order += [name for name in config.arms if name not in HEADLINE]
    keys = choose(facts, lead=order[0], arms=order, rows_per_family=config.report.rows_per_family)
    by_key = {fact.key: fact for fact in facts}
    cards = [_card(journal, by_key[key]) for key in keys]
    shown = {card.picture for card in cards}
    pictures = {
        picture.sha256: picture.data_url()
        for rows in tests
        for task in rows.tasks
        for picture in task.pictures
        if picture.sha256 in shown
    }
    curves = None if config.training is None else config.training / "curves.png"
    return Material(
        title=config.report.title,
        results=results,
        matrix=matrix,
        cards=cards,
        total=len(facts),
        pictures=pictures,
        curves=curves.read_bytes() if curves is not None and curves.is_file() else None,
    )


def _card(journal: Journal, facts: Facts) -> Card:
    record = journal.read(facts.key)
    found = reward(record["trajectory"])
    total = "" if found.total is None else f"{found.total:g}: "
    return card_of(record, facts, f"{total}{found.explanation}")


def _training(config: EvalConfig) -> dict[str, Any]:
    """``grpo_steps`` and ``seconds`` of the training run, as far as its summary tells."""
    if config.training is None:
        return {}
    try:
        summary = json.loads((config.training / "train.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    seconds = summary.get("seconds")
    return {"grpo_steps": summary.get("steps"), "seconds": seconds if isinstance(seconds, dict) else {}}
