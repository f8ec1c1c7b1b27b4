"""Following a running job: verl's metrics and the agent loop's records become our step records as they appear.

One idea: the follower only reads what the job appends, so it can be started, killed and started again at any time; the
record of a step is written once both halves are there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from train.curves import read_metrics
from train.outage import Pause, pause_of
from train.paths import RunPaths
from train.rollout_log import RolloutRecord, latest, read_records
from train.step_metrics import rollout_metrics, step_metrics

_VALIDATION = (
    "rollouts", "invalid", "accuracy", "reward", "format", "malformed", "copied", "calls", "accuracy_by_group",
    "accuracy_by_source",
)  # fmt: skip


class ExpertsDown(RuntimeError):
    """The job waited for its experts as long as it was allowed to."""


class PauseWatch:
    """Tells of a pause once, and of its end. Raises ExpertsDown where the workers have given up."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._folder, self._tell = folder, tell
        self._seen: Pause | None = None

    def poll(self) -> bool:
        """Whether the job waits for its experts now."""
        now, before = pause_of(self._folder), self._seen
        self._seen = now
        if now is not None and now.given_up:
            raise ExpertsDown(f"experts were down for {now.seconds:.0f} s ({now.why}), longer than watch.pause_seconds")
        if now is not None and before is None:
            self._tell(f"paused: experts are down ({now.why}); rollouts wait, one at a time is tried")
        if now is None and before is not None:
            self._tell(f"goes on after a pause of {before.seconds:.0f} s: the experts are back")
        return now is not None


class Follower:
    """Reads the files of one attempt of a run; `poll()` returns the step records that are new."""

    def __init__(self, paths: RunPaths, attempt: int, first_step: int) -> None:
        self._paths = paths
        self._attempt = attempt
        self._verl_offset = 0
        self._rollout_offset = paths.rollouts.stat().st_size if paths.rollouts.exists() else 0
        self._records: dict[int, list[RolloutRecord]] = {}
        self._validations: dict[int, list[RolloutRecord]] = {}
        # A resumed run repeats the steps after its checkpoint: theirs are written anew.
        self.history = [r for r in read_metrics(paths.metrics) if r["step"] < first_step]
        self._recover(first_step)
        self._rewrite()

    def _recover(self, first_step: int) -> None:
        """Records of steps that reached their checkpoint but not verl's log: what the rollouts tell is not lost."""
        known = {r["step"] for r in self.history}
        records, _ = read_records(self._paths.rollouts)
        for step, rollouts in latest(records):
            if step < first_step and step not in known:
                self.history.append(step_metrics(step, rollouts, {}))
        self.history.sort(key=lambda record: record["step"])

    def poll(self) -> list[dict[str, Any]]:
        # First the steps, then the rollouts: verl reports a step after its last rollout has left its line.
        steps = list(self._verl_steps())
        records, self._rollout_offset = read_records(self._paths.rollouts, self._rollout_offset)
        for record in records:
            side = self._records if record.split == "train" else self._validations
            side.setdefault(record.step, []).append(record)
        new = []
        for step, metrics in steps:
            rollouts = self._records.pop(step, [])
            result = step_metrics(step, rollouts, metrics)
            if step in self._validations:
                seen = rollout_metrics(self._validations.pop(step))
                result["validation"] = {k: seen[k] for k in _VALIDATION}
            self.history.append(result)
            self._append(result)
            new.append(result)
        return new

    def _verl_steps(self) -> Iterator[tuple[int, dict[str, Any]]]:
        path = self._paths.verl_metrics(self._attempt)
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(self._verl_offset)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self._verl_offset += end
        for line in data[:end].splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue  # a full disk can cut a line in its middle
            if "training/global_step" in record["data"]:
                yield int(record["step"]), record["data"]

    def _append(self, record: dict[str, Any]) -> None:
        with self._paths.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def _rewrite(self) -> None:
        self._paths.root.mkdir(parents=True, exist_ok=True)
        partial = self._paths.metrics.with_suffix(".partial")
        partial.write_text("".join(json.dumps(r) + "\n" for r in self.history), encoding="utf-8")
        partial.replace(self._paths.metrics)


def last_lines(path: Path, count: int = 15) -> str:
    """The end of a log, for an error message."""
    if not path.exists():
        return "(no log)"
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 8192))
        return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-count:])
