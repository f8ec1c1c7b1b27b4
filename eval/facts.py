"""What an evaluation keeps in memory of one finished trajectory: the few facts that every number is made of.

The one idea: the journal on disk holds the whole trajectory (token ids, texts, observations), and metrics
need about twenty small values of it. ``facts_of`` reads them once, from the trajectory's JSON form, so
thousands of episodes fit in memory and every metric is a pure function over ``Facts``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Key = tuple[str, str, int]
"""(arm, row id, sample): what names one trajectory within an evaluation."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One trajectory, reduced. Times in seconds, token counts as reported by whoever spent them."""

    arm: str
    row_id: str
    sample: int
    split: str
    group: str
    valid: bool
    """False: an infrastructure failure ended the episode; it is neither right nor wrong."""
    value: float | None
    """Score in 0..1, ``None`` exactly when ``valid`` is false."""
    error: str | None
    stop: str
    turns: int
    calls: int
    """Well-formed calls, carried out or not."""
    copied_calls: int
    malformed_turns: int
    forged: int
    cached_calls: int
    pairs: tuple[str, ...]
    """``Expert@@Skill`` of each well-formed call, in order."""
    policy_prompt_tokens: int
    policy_completion_tokens: int
    expert_tokens: int
    latency_s: float

    @property
    def key(self) -> Key:
        return (self.arm, self.row_id, self.sample)

    @property
    def verdict(self) -> str:
        """``error``, ``right`` (full score) or ``wrong``."""
        if self.value is None:
            return "error"
        return "right" if self.value >= 1.0 else "wrong"


def same_question(query: str, question: str) -> bool:
    """Whether a sub-question is the question itself, runs of whitespace counting as one space."""
    return query.split() == question.split()


def facts_of(arm: str, split: str, value: float | None, trajectory: Mapping[str, Any]) -> Facts:
    """Read the facts of a trajectory in JSON form; ``value`` is its score and is dropped where the
    trajectory is invalid."""
    turns: list[Mapping[str, Any]] = list(trajectory["turns"])
    question = str(trajectory["question"])
    searches = [turn["action"] for turn in turns if turn["action"]["type"] == "search"]
    observations = [turn["observation"] for turn in turns if turn.get("observation")]
    valid = bool(trajectory["valid"])
    counts = trajectory.get("counts") or {}
    return Facts(
        arm=arm,
        row_id=str(trajectory["row_id"]),
        sample=int(trajectory["sample"]),
        split=split,
        group=str(trajectory.get("group") or ""),
        valid=valid,
        value=value if valid else None,
        error=trajectory.get("error"),
        stop=str(trajectory["stop"]),
        turns=len(turns),
        calls=len(searches),
        copied_calls=sum(same_question(action["query"], question) for action in searches),
        malformed_turns=sum(turn["action"]["type"] == "malformed" for turn in turns),
        forged=int(counts.get("forged_observation", 0)),
        cached_calls=sum(bool(observation.get("cached")) for observation in observations),
        pairs=tuple(f"{action['expert']}@@{action['skill']}" for action in searches),
        policy_prompt_tokens=sum(int(turn.get("prompt_tokens") or 0) for turn in turns),
        policy_completion_tokens=sum(int(turn.get("completion_tokens") or 0) for turn in turns),
        expert_tokens=sum(_tokens(observation.get("usage")) for observation in observations),
        latency_s=float((trajectory.get("timings") or {}).get("total_s", 0.0)),
    )


def _tokens(usage: Mapping[str, Any] | None) -> int:
    if not usage:
        return 0
    return int(usage.get("prompt_tokens") or 0) + int(usage.get("completion_tokens") or 0)
