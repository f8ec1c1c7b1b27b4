"""Scores saved trajectories again, with the rules as they are now or with another one; no model, no network.

The one idea: a trajectory holds question, options, right answers and what was answered, so its score is a function
of its line in the journal. The journal is only read; what would change is written beside it, row by row.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eval.benchmarks.program import require_sandbox
from eval.journal import Journal
from eval.judge import Judge
from eval.phases import StartPhase, silent
from eval.run_folder import JOURNAL, check_run, nothing_in
from eval.saved import definition_of, task_of_record
from eval.whole_file import write_whole
from orchestrator.task import Task
from registry.errors import UserFault
from rewards import Score
from rewards import score as by_rule
from rewards.benchmarks import rule_name

FILE = "replay.json"
Scorer = Callable[[Task, str | None], Score]
MOST_UNSCORED = 100
_SAME = 1e-12
_LONGEST_NAME = 60


class NoSuchRule(UserFault):
    """The rule asked for does not exist for a benchmark: nothing of it can be scored."""


@dataclass(frozen=True)
class Change:
    """One trajectory whose score is another one now. ``read_before`` and ``read_after``: the answer as the rules
    read it; ``why``: the new rule's explanation."""

    arm: str
    row: str
    sample: int
    split: str
    group: str
    before: float
    after: float
    answer: str | None
    gold: Any
    read_before: str | None
    read_after: str | None
    why_before: str
    why: str


@dataclass
class ArmTotals:
    """One arm on one split, over the valid trajectories that the rule could score; an error is in ``errors`` alone."""

    scored: int = 0
    errors: int = 0
    unscored: int = 0
    up: int = 0
    """Trajectories whose score rose."""
    down: int = 0
    before: float | None = None
    """Mean score then and now, over ``scored``."""
    after: float | None = None


@dataclass(frozen=True)
class Replay:
    """What scoring again gave."""

    scorer: str | None
    """The rule asked for; ``None``: each row's own."""
    lenient: bool
    trajectories: int
    changes: list[Change]
    unscored: dict[str, str]
    """Row -> why the rule cannot score it, for the first ones."""
    arms: dict[str, dict[str, ArmTotals]] = field(default_factory=dict)
    """Split -> arm -> totals."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def replay(
    folder: Path, *, scorer: str | None = None, lenient: bool = False, start_phase: StartPhase = silent
) -> Replay:
    """Score the journal of a run folder again and write ``replay.json`` into it.

    Args:
        scorer: a rule (or benchmark) to use instead of each row's own.
        lenient: the lenient rule of each row's benchmark, as its file names it.

    Raises:
        UserFault: no such run, a journal without a trajectory, an unknown rule (both with the nearest names), both
            options at once, a benchmark without a lenient rule, or one whose answers are programs where there is no
            sandbox.
    """
    if scorer is not None and lenient:
        raise UserFault("two rules at once", where="--scorer, --lenient", fix="give one of them")
    check_run(folder)
    benchmark = definition_of(folder)
    score = _choose(scorer, lenient, Judge(benchmark))
    with Journal(folder / JOURNAL, read_only=True) as journal:
        if not journal.facts:
            raise nothing_in(folder)
        if scorer is None and not lenient and benchmark is not None and benchmark.answer.kind == "program":
            require_sandbox(benchmark.title)
        advance = start_phase("scoring again", len(journal.facts))
        found = Replay(scorer, lenient, len(journal.facts), [], {})
        scores: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        for key in sorted(journal.facts):
            record = journal.read(key)
            value = _score_again(record, score, found)
            if value is not None:
                before, after = scores[record["split"], record["arm"]]
                before.append(float(record["score"]["value"]))
                after.append(value)
            advance()
    for (split, arm), (before, after) in scores.items():
        totals = found.arms[split][arm]
        totals.before, totals.after = math.fsum(before) / len(before), math.fsum(after) / len(after)
    _write(folder / FILE, found.to_json())
    return found


def _choose(scorer: str | None, lenient: bool, judge: Judge) -> Scorer:
    """What scores a task's answer."""
    if scorer is not None:
        try:
            name = rule_name(scorer)
        except ValueError as error:
            text = str(error)
            hint = text[max(text.rfind("did you mean "), text.rfind("known are ")) :]
            raise UserFault(f"unknown rule {scorer[:_LONGEST_NAME]!r}", where="--scorer", fix=hint) from None
        return lambda task, answer: _by_rule(name, task, answer)
    return (lambda task, answer: _lenient(judge, task, answer)) if lenient else judge


def _by_rule(name: str, task: Task, answer: str | None) -> Score:
    if task.ground_truth is None:
        raise ValueError("no right answer to score against")
    return by_rule(name, task.ground_truth, answer, choices=task.choices, group=task.group)


def _lenient(judge: Judge, task: Task, answer: str | None) -> Score:
    benchmark = judge.benchmark_of(task.benchmark)
    if benchmark is None or benchmark.scorer.lenient is None:
        raise NoSuchRule(
            f"benchmark {task.benchmark!r} has no lenient rule", fix="name a rule with --scorer, or leave --lenient out"
        )
    return judge.verdict(task, answer).lenient


def _score_again(record: Mapping[str, Any], score: Scorer, found: Replay) -> float | None:
    """The new value; ``None`` where there is nothing to score or the rule cannot."""
    trajectory, old = record["trajectory"], record["score"]
    totals = found.arms.setdefault(record["split"], {}).setdefault(record["arm"], ArmTotals())
    if old is None or not trajectory["valid"]:
        totals.errors += 1
        return None
    task = task_of_record(trajectory)
    try:
        new = score(task, trajectory.get("answer"))
    except NoSuchRule:
        raise
    except (ValueError, UserFault) as error:
        totals.unscored += 1
        if len(found.unscored) < MOST_UNSCORED:
            found.unscored.setdefault(task.row_id, str(error).partition("\n")[0])
        return None
    new = _with_judge(record, new, found)
    totals.scored += 1
    before = float(old["value"])
    if abs(new.value - before) > _SAME:
        totals.up += new.value > before
        totals.down += new.value < before
        found.changes.append(_change(record, new))
    return new.value


def _with_judge(record: Mapping[str, Any], new: Score, found: Replay) -> Score:
    """The judge model's word, where it was asked and the row's own rule still reads nothing: nobody is asked again."""
    said = (record.get("judge") or {}).get("said")
    kept = said is not None and found.scorer is None and (new.answer is None or (found.lenient and said == "right"))
    if not kept or new.value > 0:
        return new
    old = record["score"]
    return Score(float(old["value"]), old.get("answer"), str(old.get("explanation") or ""))


def _change(record: Mapping[str, Any], new: Score) -> Change:
    trajectory, old = record["trajectory"], record["score"]
    return Change(
        arm=record["arm"],
        row=trajectory["row_id"],
        sample=trajectory["sample"],
        split=record["split"],
        group=str(trajectory.get("group") or ""),
        before=float(old["value"]),
        after=new.value,
        answer=trajectory.get("answer"),
        gold=trajectory.get("ground_truth"),
        read_before=old.get("answer"),
        read_after=new.answer,
        why_before=str(old.get("explanation") or ""),
        why=new.explanation,
    )


def _write(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=True) + "\n")
