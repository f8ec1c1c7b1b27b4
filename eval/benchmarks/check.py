"""What is wrong with a copy of a benchmark: every faulty row, and right answers that its own rule does not take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eval.benchmarks.item import Item
from eval.benchmarks.reader import Reading, outcomes
from eval.benchmarks.scoring import verdict
from eval.benchmarks.spec import Benchmark
from eval.benchmarks.tally import RowFault, Tally
from registry.errors import UserFault

MOST_LISTED = 10_000
"""Faults, and notes, that are kept; all are counted."""


@dataclass
class Findings:
    """faults: where, reason, what. notes: right answers that score 0 by the official rule. official, lenient: rows all
    of whose right answers score 1. seconds: wall time of reading and scoring."""

    benchmark: Benchmark
    tally: Tally
    faults: list[dict[str, str]] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)
    official: int = 0
    lenient: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.tally.kept > 0 and not self.tally.faulty

    def record(self) -> dict[str, Any]:
        """As JSON."""
        tally = self.tally
        return {
            "benchmark": self.benchmark.name,
            "ok": self.ok,
            "seen": tally.seen,
            "usable": tally.kept,
            "left_out": tally.left_out,
            "reasons": dict(tally.reasons),
            "faults": self.faults,
            "gold_scores_1": {"official": self.official, "lenient": self.lenient},
            "gold_scores_0": self.notes,
            "expected_rows": self.benchmark.rows,
            "seconds": round(self.seconds, 3),
        }


def check_rows(benchmark: Benchmark, reading: Reading, *, tell: Callable[[RowFault], None] | None = None) -> Findings:
    """Read rows, at most `reading.limit`, good or faulty, and score each with its own right answers.

    tell: called with each fault as it is found. Raises UserFault when there are no rows to be had at all.
    """
    found = Findings(benchmark, Tally(benchmark.name))
    started = time.monotonic()
    for one in outcomes(benchmark, reading, found.tally):
        fault = _scored(found, one) if isinstance(one, Item) else one
        if fault is not None:
            if len(found.faults) < MOST_LISTED:
                found.faults.append({"where": str(fault.where), "reason": fault.reason, "what": fault.what})
            if tell is not None:
                tell(fault)
        if reading.limit is not None and found.tally.seen >= reading.limit:
            break
    found.seconds = time.monotonic() - started
    return found


def _scored(found: Findings, item: Item) -> RowFault | None:
    """Scores the row's right answers; the fault where that can't be done (no sandbox for its program, say), which takes
    the row from those that can be used."""
    try:
        _score(found, item)
    except (ValueError, UserFault) as reason:
        what = reason.what if isinstance(reason, UserFault) else str(reason)
        fault = RowFault("cannot be scored", what, where=f"row {item.row.id}")
        found.tally.kept -= 1
        found.tally.note(fault)
        return fault
    return None


def _score(found: Findings, item: Item) -> None:
    """Each of several right answers is looked at; a program's is the solution that the row brings, if any."""
    benchmark, task, extra = found.benchmark, item.task(), item.row.extra
    if benchmark.answer.kind == "program":
        said = [extra["solution"]] if "solution" in extra else []
    else:
        said = extra.get("answers", [item.row.answer])
    gold = item.row.answer if task.ground_truth is None else task.ground_truth
    verdicts = [verdict(benchmark, gold, one, choices=task.choices, group=task.group) for one in said]
    found.official += bool(verdicts) and all(one.official.value == 1 for one in verdicts)
    found.lenient += bool(verdicts) and all(one.lenient.value == 1 for one in verdicts)
    for answer, one in zip(said, verdicts, strict=True):
        if one.official.value != 1 and len(found.notes) < MOST_LISTED:
            found.notes.append({"row": item.row.id, "answer": str(answer)[:200], "why": one.official.explanation})
