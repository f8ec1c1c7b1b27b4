"""What one training rollout leaves behind: a short record for statistics, the whole trajectory for some.

One idea: the agent loop appends, the launcher reads; one JSON line a rollout, never rewritten. `attempt` tells a
resumed run's lines from those of the run that was killed: for a step the highest attempt counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RolloutRecord:
    """One rollout. `reward` and its parts are None where the rollout is invalid (infrastructure failure)."""

    step: int
    attempt: int
    split: str
    row: str
    index: int
    sample: int
    group: str
    seed: int
    valid: bool
    reward: float | None
    answer: float | None
    format: float | None
    stop: str
    pairs: tuple[str, ...]
    copied: int
    calls: int
    malformed: int
    policy_tokens: int
    trajectory: dict[str, Any] | None = field(default=None, repr=False)

    def line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")) + "\n"


def read_records(path: Path, offset: int = 0) -> tuple[list[RolloutRecord], int]:
    """Complete lines from byte `offset` on, and the offset after them; a half-written last line is left for later."""
    if not path.exists():
        return [], offset
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    end = data.rfind(b"\n") + 1
    records = []
    for line in data[:end].splitlines():
        try:
            raw = json.loads(line)
        except ValueError:
            continue  # the line that a killed writer left half done
        records.append(RolloutRecord(**{**raw, "pairs": tuple(raw["pairs"])}))
    return records, offset + end


def latest(records: list[RolloutRecord], split: str = "train") -> Iterator[tuple[int, list[RolloutRecord]]]:
    """(step, records of its highest attempt), by step."""
    by_step: dict[int, list[RolloutRecord]] = {}
    for record in records:
        if record.split == split:
            by_step.setdefault(record.step, []).append(record)
    for step in sorted(by_step):
        attempt = max(r.attempt for r in by_step[step])
        yield step, [r for r in by_step[step] if r.attempt == attempt]
