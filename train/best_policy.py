"""The best policy so far, kept beside the last one: `policy-best/`, complete or not at all.

One idea: a checkpoint is judged when its step's record is there, by the validation accuracy of that step, or, in a run
that never validates on the way, by the mean training reward of the steps that led to it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train import checkpoints
from train.config import CheckpointSection
from train.paths import RunPaths

FILE = "best.json"
_REWARD_STEPS = 10  # one step's reward is mostly luck


def figure_of(
    record: Mapping[str, Any], history: Sequence[Mapping[str, Any]], section: CheckpointSection
) -> tuple[str, float] | None:
    """(what was measured, its value) of the policy after the step of `record`; None where nothing was."""
    if section.validate_every:
        accuracy = (record.get("validation") or {}).get("accuracy")
        return None if accuracy is None else ("validation accuracy", float(accuracy))
    first = record["step"] - min(section.every, _REWARD_STEPS)
    rewards = [
        one["reward"] for one in history if first < one["step"] <= record["step"] and one.get("reward") is not None
    ]
    return ("training reward", sum(rewards) / len(rewards)) if rewards else None


def read_best(folder: Path) -> dict[str, Any] | None:
    """{"step", "by", "figure"} of the kept policy; None where none is kept."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return {"step": int(found["step"]), "by": str(found["by"]), "figure": float(found["figure"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_best(
    record: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    section: CheckpointSection,
    paths: RunPaths,
    processor_from: Path,
) -> bool:
    """Keep the policy after the step of `record` if it has a checkpoint and is better than the one kept.

    Equal figures leave the earlier one. Returns whether it was kept. Raises OSError, and leaves what was there.
    """
    step = int(record["step"])
    found = figure_of(record, history, section)
    if found is None or not checkpoints.is_complete(paths.checkpoints / f"global_step_{step}"):
        return False
    by, figure = found
    best = read_best(paths.best)
    if best is not None and best["by"] == by and best["step"] != step and figure <= best["figure"]:
        return False
    note = json.dumps({"step": step, "by": by, "figure": figure}, indent=1) + "\n"
    try:
        checkpoints.export(paths.checkpoints, step, paths.best, processor_from, {FILE: note})
    except OSError:
        shutil.rmtree(paths.best.with_name(paths.best.name + ".partial"), ignore_errors=True)
        raise
    return True
