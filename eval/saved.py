"""What a run folder saved of its questions and their benchmark: enough to score its answers again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.benchmarks.catalogue import find_benchmark
from eval.benchmarks.spec import Benchmark
from eval.redraw import FILE as RUN_FILE
from orchestrator.task import Task
from registry.errors import UserFault


def task_of_record(trajectory: Mapping[str, Any]) -> Task:
    """The task of a saved trajectory, without its pictures: all that a rule may look at."""
    gold, choices = trajectory.get("ground_truth"), trajectory.get("choices")
    try:
        return Task(
            row_id=str(trajectory["row_id"]),
            benchmark=str(trajectory["benchmark"]),
            group=str(trajectory.get("group") or ""),
            question=str(trajectory["question"]),
            pictures=(),
            ground_truth=gold if gold is None or isinstance(gold, str) else tuple(str(one) for one in gold),
            choices=None if choices is None else tuple(str(one) for one in choices),
        )
    except (KeyError, TypeError) as error:
        raise UserFault(
            f"a saved trajectory cannot be scored again: {error} is missing or wrong",
            where=f"row {trajectory.get('row_id')}",
            fix="delete its line from journal.jsonl; `maestro evaluate` runs it again",
        ) from error


def definition_of(folder: Path) -> Benchmark | None:
    """The benchmark of a run folder: as its file is now, or else as it was when the run was started."""
    try:
        record = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        name, saved = record["config"]["benchmark"], record.get("benchmark")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    try:
        return find_benchmark(str(name))
    except UserFault:
        return None if saved is None else Benchmark.model_validate(saved)
