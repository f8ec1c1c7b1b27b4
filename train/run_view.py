"""A run seen from its folder: how far it is, how fast, how well, and what is wrong.

One idea: everything is read from files that the run leaves anyway, so whoever sees the folder (another terminal,
another machine with a shared disk) sees the run; nothing is written, nobody is asked.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train.collapse import GIVEN_UP_ABOVE, Raised, raised
from train.curves import read_metrics
from train.outage import Pause, pause_of
from train.paths import RunPaths

_RECENT = 10  # steps that a rate is taken from
_TAIL_BYTES = 16_000_000  # of the rollouts, to count those of the step under way
_QUIET_SECONDS = 900.0
_STEP = re.compile(rb'^\{"step":(\d+),"attempt":\d+,"split":"(\w+)"')


@dataclass(frozen=True)
class RunView:
    """state: starting, cold start, training, paused, quiet (no sign of life for a quarter of an hour), finished.

    rollouts, of_rollouts: training rollouts of the step under way, finished and in all. seconds_a_step: median of
    the last steps, validations and checkpoints included. left_s: estimate of what is left. age_s: seconds since the
    run last wrote something.
    """

    root: Path
    name: str
    state: str
    step: int
    steps: int
    rollouts: int
    of_rollouts: int
    seconds_a_step: float | None
    left_s: float | None
    age_s: float | None
    history: list[dict[str, Any]] = field(repr=False)
    alarms: list[Raised] = field(default_factory=list)
    pause: Pause | None = None
    cold: dict[str, Any] | None = None
    config: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the history but for its last record."""
        return {
            "run": str(self.root),
            "name": self.name,
            "state": self.state,
            "step": self.step,
            "steps": self.steps,
            "rollouts": [self.rollouts, self.of_rollouts],
            "seconds_a_step": self.seconds_a_step,
            "left_s": self.left_s,
            "age_s": self.age_s,
            "pause": None if self.pause is None else vars(self.pause),
            "cold_start": self.cold,
            "alarms": [
                {"name": r.alarm.name, "text": r.alarm.text, "fatal": r.alarm.fatal, "first_step": r.step,
                 "last_step": r.last, "steps": r.times}
                for r in self.alarms
            ],
            "last": self.history[-1] if self.history else None,
        }  # fmt: skip


def read_view(folder: Path, now: float | None = None) -> RunView:
    """The run in `folder` as it stands. now: seconds since the epoch. Raises UserFault where there is no run."""
    now = time.time() if now is None else now
    paths = RunPaths.at(folder)
    config = read_json(paths.config)
    if config is None:
        raise UserFault(
            "no training run here (no config.json)", where=str(paths.root), fix="give the folder of `maestro train`"
        )
    grpo = config.get("grpo") or {}
    history = read_metrics(paths.metrics)
    step, steps = (history[-1]["step"] if history else 0), int(grpo.get("steps", 0))
    age = _age(paths, now)
    pause = pause_of(paths.pauses, now)
    seconds = _median([r["seconds"] for r in history[-_RECENT:] if r.get("seconds")])
    finished = step >= steps and (paths.policy / "config.json").exists()
    return RunView(
        root=paths.root,
        name=str(config.get("name", "")),
        state=_state(paths, finished, pause, age),
        step=step,
        steps=steps,
        rollouts=0 if finished else _rollouts(paths.rollouts, step + 1),
        of_rollouts=int(grpo.get("prompts", 0)) * int(grpo.get("samples", 0)),
        seconds_a_step=seconds,
        left_s=None if seconds is None else max(0, steps - step) * seconds,
        age_s=age,
        history=history,
        alarms=raised(
            history,
            max_gap=float(grpo.get("max_gap", 1e-4)),
            given_up_above=float((config.get("watch") or {}).get("given_up_above", GIVEN_UP_ABOVE)),
        ),
        pause=pause,
        cold=None if history else _cold(paths, config),
        config=config,
    )


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file; None where there is none, or half of one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _state(paths: RunPaths, finished: bool, pause: Pause | None, age: float | None) -> str:
    if finished:
        return "finished"
    if pause is not None:
        return "paused"
    if age is not None and age > _QUIET_SECONDS:
        return "quiet"
    if paths.checkpoints.exists():
        return "training"
    return "cold start" if paths.cold_log.exists() else "starting"


def _age(paths: RunPaths, now: float) -> float | None:
    """Seconds since one of the files grew that a living run appends to."""
    files = [paths.metrics, paths.rollouts, paths.cold_log, paths.summary, paths.config, paths.cache / "cache.db"]
    files += list((paths.root / "logs").glob("verl-*"))
    times = []
    for file in files:
        try:
            times.append(file.stat().st_mtime)
        except OSError:
            continue
    return max(0.0, now - max(times)) if times else None


def _rollouts(path: Path, step: int) -> int:
    """Training rollouts of a step that are in the file; only its end is looked at."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            found = [m for line in file if (m := _STEP.match(line)) and line.endswith(b"\n")]
    except OSError:
        return 0
    return sum(m[1] == b"%d" % step and m[2] == b"train" for m in found)


def _cold(paths: RunPaths, config: dict[str, Any]) -> dict[str, Any] | None:
    """{"step", "steps", "loss", "seconds"} of the cold start; None where it has not begun."""
    try:
        lines = paths.cold_log.read_bytes().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            return {**json.loads(line), "steps": (config.get("cold_start") or {}).get("steps")}
        except (ValueError, TypeError):  # half a line, or no record at all
            continue
    return None


def _median(values: list[float]) -> float | None:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None
