"""The record of a finished episode.

The one idea: one frozen record, one JSON line; viewer, replay, rewards, reports and training read this and
nothing else. Only what the policy wrote and kept is in `turns[].text`; what it wrote behind an action is in
`dropped_text`, what the world wrote in `observation`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from experts.outcome import Usage
from orchestrator.action import Search, action_to_json
from orchestrator.episode import Episode
from orchestrator.turn import Turn

VERSION = 1


@dataclass(frozen=True)
class Trajectory:
    """Field by field what one JSON line holds (beside `version`).

    pictures: {"sha256", "width", "height"} each. prompt_ids, response_ids, response_mask, response_logprobs:
    None for policies without ids. answer: None where the episode holds none. valid: False where machinery
    failed, so that the episode counts neither as right nor as wrong; `error` says what. counts: calls,
    malformed, forged_observation, cached_calls. usage: {"policy": {...}, "experts": {...}}. timings: total_s,
    policy_s, expert_s.
    """

    id: str
    row_id: str
    benchmark: str
    group: str
    question: str
    answer: str | None
    choices: list[str] | None
    ground_truth: Any
    pictures: list[dict[str, Any]]
    policy: str
    seed: int
    sample: int
    prompt_ids: list[int] | None
    response_ids: list[int] | None
    response_mask: list[int] | None
    response_logprobs: list[float] | None
    turns: list[dict[str, Any]]
    stop: str
    valid: bool
    error: str | None
    counts: dict[str, int]
    usage: dict[str, dict[str, float]]
    timings: dict[str, float]
    versions: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """JSON-able mapping with `version` first."""
        return {"version": VERSION} | {f.name: getattr(self, f.name) for f in fields(self)}

    def to_line(self) -> str:
        """One JSON line without its newline."""
        return json.dumps(self.to_json(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | str) -> Trajectory:
        """Inverse of `to_json` and `to_line`. Raises ValueError where the version or a needed field is
        wrong."""
        record = dict(json.loads(data)) if isinstance(data, str) else dict(data)
        if record.pop("version", None) != VERSION:
            raise ValueError(f"a trajectory of version {VERSION} is needed, this is no such record")
        names = {f.name for f in fields(cls)}
        if missing := sorted(names - record.keys() - {"versions"}):
            raise ValueError(f"trajectory without {', '.join(missing)}")
        return cls(**{name: record[name] for name in names if name in record})


def from_episode(
    episode: Episode,
    *,
    policy: str,
    seed: int,
    sample: int = 0,
    total_s: float = 0.0,
    versions: Mapping[str, str] | None = None,
) -> Trajectory:
    """The record of a stopped episode. Raises ValueError while it still runs or where it carries no task."""
    task, stop = episode.task, episode.stop
    if stop is None or task is None:
        raise ValueError(f"episode {episode.task_id} {'still runs' if task else 'carries no task'}")
    gold = task.ground_truth
    return Trajectory(
        id=f"{task.row_id}#{sample}",
        row_id=task.row_id,
        benchmark=task.benchmark,
        group=task.group,
        question=task.question,
        answer=episode.answer,
        choices=None if task.choices is None else list(task.choices),
        ground_truth=gold if gold is None or isinstance(gold, str) else list(gold),
        pictures=[{"sha256": p.sha256, "width": p.width, "height": p.height} for p in task.pictures],
        policy=policy,
        seed=seed,
        sample=sample,
        prompt_ids=_list(episode.prompt_ids),
        response_ids=_list(episode.response_ids),
        response_mask=_list(episode.response_mask),
        response_logprobs=_list(episode.response_logprobs),
        turns=[turn_to_json(turn) for turn in episode.turns],
        stop=stop.value,
        valid=episode.valid,
        error=episode.error or _first_failure(episode),
        counts=_counts(episode),
        usage=_usage(episode),
        timings={
            "total_s": total_s,
            "policy_s": sum(turn.latency_s for turn in episode.turns),
            "expert_s": sum(turn.observation.latency_s for turn in episode.turns if turn.observation),
        },
        versions=dict(versions or {}),
    )


def turn_to_json(turn: Turn) -> dict[str, Any]:
    """One element of `turns`."""
    return {
        "text": turn.text + turn.closing,
        "token_ids": _list(turn.token_ids),
        "logprobs": _list(turn.logprobs),
        "finish_reason": turn.finish_reason,
        "latency_s": turn.latency_s,
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "action": action_to_json(turn.action),
        "dropped_text": turn.dropped_text,
        "forged": turn.forged,
        "observation": None if turn.observation is None else turn.observation.to_json(),
    }


def _counts(episode: Episode) -> dict[str, int]:
    seen = [
        t.observation for t in episode.turns if isinstance(t.action, Search) and t.observation is not None
    ]
    return {
        "calls": episode.calls,
        "malformed": episode.malformed,
        "forged_observation": sum(turn.forged for turn in episode.turns),
        "cached_calls": sum(observation.cached for observation in seen),
    }


def _usage(episode: Episode) -> dict[str, dict[str, float]]:
    experts = sum((t.observation.usage for t in episode.turns if t.observation), Usage())
    return {
        "policy": {
            "prompt_tokens": sum(turn.prompt_tokens for turn in episode.turns),
            "completion_tokens": sum(turn.completion_tokens for turn in episode.turns),
        },
        "experts": {f.name: getattr(experts, f.name) for f in fields(experts)},
    }


def _first_failure(episode: Episode) -> str | None:
    for number, turn in enumerate(episode.turns, 1):
        seen = turn.observation
        if seen is not None and seen.outcome.infrastructure:
            return (
                f"turn {number}, {seen.expert}@@{seen.skill}: {seen.outcome.value}: {seen.error or seen.text}"
            )
    return None


def _list(values: tuple[Any, ...] | None) -> list[Any] | None:
    return None if values is None else list(values)
