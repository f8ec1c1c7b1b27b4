"""What one training rollout leaves behind: a short record for statistics, the whole trajectory for some.

One idea: the agent loop appends, the launcher reads; one JSON line a rollout, never rewritten. `attempt` tells a
resumed run's lines from those of the run that was killed: for a step the highest attempt counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.trajectory import Trajectory

Call = tuple[str, str, float, bool]
"""One delegation that was carried out: expert, outcome, seconds, from the cache."""


@dataclass(frozen=True)
class RolloutRecord:
    """One rollout. `reward` and its parts are None where the rollout is invalid (infrastructure failure).

    source: the row's data set. turns: of the policy. prompt_tokens, response_tokens: what the engine read before the
    first turn, and all that followed, observations included. cut_turns: turns that ended at their token limit.
    cut_observations: observations that were shortened. policy_s, expert_s: seconds. waited_s: seconds in which the job
    waited for its experts. These came later than the others: None in older runs' files.
    """

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
    source: str | None = None
    turns: int | None = None
    prompt_tokens: int | None = None
    response_tokens: int | None = None
    cut_turns: int | None = None
    cut_observations: int | None = None
    experts: tuple[Call, ...] | None = None
    policy_s: float | None = None
    expert_s: float | None = None
    waited_s: float | None = None
    error: str | None = None

    def line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")) + "\n"


_NAMES = frozenset(one.name for one in fields(RolloutRecord))


def details(trajectory: Trajectory, waited_s: float = 0.0) -> dict[str, Any]:
    """The fields of a record that only the trajectory decides."""
    seen = [t["observation"] for t in trajectory.turns if t["action"]["type"] == "search" and t.get("observation")]
    return {
        "source": trajectory.benchmark,
        "turns": len(trajectory.turns),
        "prompt_tokens": len(trajectory.prompt_ids or ()),
        "response_tokens": len(trajectory.response_ids or ()),
        "cut_turns": sum(turn.get("finish_reason") == "length" for turn in trajectory.turns),
        "cut_observations": sum(bool(one.get("truncated")) for one in seen),
        "experts": tuple(
            (str(one["expert"]), str(one["outcome"]), round(one["latency_s"], 4), bool(one["cached"])) for one in seen
        ),
        "policy_s": round(trajectory.timings["policy_s"], 4),
        "expert_s": round(trajectory.timings["expert_s"], 4),
        "waited_s": round(waited_s, 3),
        "error": None if trajectory.error is None else trajectory.error[:500],
    }


def record_of(raw: dict[str, Any]) -> RolloutRecord:
    """A record from its JSON form; fields that a later version added are passed over."""
    known = {name: value for name, value in raw.items() if name in _NAMES}
    known["pairs"] = tuple(raw["pairs"])
    if raw.get("experts") is not None:
        known["experts"] = tuple((str(e), str(o), float(s), bool(c)) for e, o, s, c in raw["experts"])
    return RolloutRecord(**known)


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
        records.append(record_of(raw))
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
