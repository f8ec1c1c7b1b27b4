"""What an evaluation keeps in memory of one finished trajectory: the few facts that every number is made of.

The one idea: the journal on disk holds the whole trajectory (token ids, texts, observations), and metrics
need about thirty small values of it. ``facts_of`` reads them once, from the trajectory's JSON form, and every metric is
a pure function over ``Facts``; ``eval.facts_table`` keeps those of 100,000 episodes in little memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Any, Literal, cast, get_args

from eval.statistics.votes import vote_of
from experts.outcome import Outcome

Key = tuple[str, str, int]
"""(arm, row id, sample): what names one trajectory within an evaluation."""

Judged = Literal["right", "wrong", "ungraded"]
UNGRADED = "ungraded"
UNSCORED = "scoring"

_FAILURES = frozenset(outcome.value for outcome in Outcome if outcome.infrastructure)


@dataclass(frozen=True, slots=True)
class Facts:
    """One trajectory, reduced. Times in seconds, token counts as reported by whoever spent them, cost in the
    currency of the registry's prices."""

    arm: str
    row_id: str
    sample: int
    split: str
    group: str
    valid: bool
    """False: an infrastructure failure ended the episode, or its answer could not be scored or judged; it is
    neither right nor wrong."""
    value: float | None
    """Score in 0..1, ``None`` exactly when ``valid`` is false."""
    vote: str | None
    """The answer as its rule read it, in the form in which votes are counted; ``None``: nothing could be read."""
    error: str | None
    failure: str | None
    """What failed where ``valid`` is false: "Expert: outcome" of the last call that failed, "judge: outcome",
    ``UNSCORED`` where no rule could score the answer, else the reason to stop."""
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
    expert_prompt_tokens: int
    expert_completion_tokens: int
    expert_requests: int
    """Requests to models that the calls led to; a procedure may take several, a cached call takes none."""
    cost: float
    latency_s: float
    policy_s: float
    expert_s: float
    lenient: float | None = None
    """Score by the benchmark's lenient rule: ``value`` where the two agree, ``None`` exactly where ``value`` is."""
    groups: tuple[tuple[str, str], ...] = ()
    """Grouping and the row's label in it, as the benchmark divides its rows."""
    cluster: str | None = None
    """The question that the row asks, where several rows ask one (rotated options); ``None``: the row is a question
    of its own."""
    judged: Judged | None = None
    """What the judge model said where the rule could not decide; ``None``: it was not asked. ``ungraded`` exactly where
    that is why ``valid`` is false."""
    row_digest: str | None = None
    """Of the row as it was asked (``eval.row_digest``); ``None`` in journals that lack it."""

    @property
    def question(self) -> str:
        """What is drawn as one piece when an interval is made."""
        return self.row_id if self.cluster is None else self.cluster

    @property
    def key(self) -> Key:
        return (self.arm, self.row_id, self.sample)

    @property
    def failed(self) -> bool:
        """Whether the episode must run again for a score; where only the judge's word is missing, it need not."""
        return not self.valid and self.judged != UNGRADED

    @property
    def verdict(self) -> str:
        """``error``, ``right`` (full score) or ``wrong``."""
        if self.value is None:
            return "error"
        return "right" if self.value >= 1.0 else "wrong"

    @property
    def expert_tokens(self) -> int:
        return self.expert_prompt_tokens + self.expert_completion_tokens

    @property
    def written_tokens(self) -> int:
        """What policy and experts wrote."""
        return self.policy_completion_tokens + self.expert_completion_tokens

    @property
    def tokens(self) -> int:
        """Everything that policy and experts read and wrote; what is read again in a later turn counts again."""
        return self.policy_prompt_tokens + self.expert_prompt_tokens + self.written_tokens


def same_question(query: str, question: str) -> bool:
    """Whether a sub-question is the question itself, runs of whitespace counting as one space."""
    return query.split() == question.split()


def facts_of(
    arm: str,
    split: str,
    value: float | None,
    trajectory: Mapping[str, Any],
    *,
    read: str | None = None,
    lenient: float | None = None,
    groups: Mapping[str, str] | None = None,
    cluster: str | None = None,
    judge: Mapping[str, Any] | None = None,
    unscored: str | None = None,
    row_digest: str | None = None,
) -> Facts:
    """Read the facts of a trajectory in JSON form.

    Args:
        value: its score; dropped where the trajectory is invalid.
        read: the answer as the rule read it. Where a right answer was not read, the answer itself votes.
        lenient: its score by the lenient rule; ``None``: the same.
        groups: the row's label in each grouping.
        cluster: the question that the row asks together with other rows.
        judge: what a judge model was asked and said, as ``eval.model_judge`` notes it.
        unscored: why the answer could not be scored, where that is so.
        row_digest: of the row as it was asked.

    Raises ValueError for a score outside 0..1, and KeyError, TypeError, ValueError or AttributeError for what is
    no trajectory.
    """
    for one in (value, lenient):
        if one is not None and not 0.0 <= one <= 1.0:
            raise ValueError(f"a score must be from 0 to 1, this one is {one}")
    turns: list[Mapping[str, Any]] = list(trajectory["turns"])
    question = str(trajectory["question"])
    searches = [turn["action"] for turn in turns if turn["action"]["type"] == "search"]
    observations = [turn["observation"] for turn in turns if turn.get("observation")]
    usage = [seen.get("usage") or {} for seen in observations]
    judged = None if judge is None else _judged(judge["said"])
    ungraded = judged == UNGRADED
    valid = bool(trajectory["valid"]) and not ungraded and unscored is None
    counts, timings = trajectory.get("counts") or {}, trajectory.get("timings") or {}
    if read is None and value:
        read = trajectory.get("answer")
    return Facts(
        arm=intern(str(arm)),
        row_id=str(trajectory["row_id"]),
        sample=int(trajectory["sample"]),
        split=intern(str(split)),
        group=intern(str(trajectory.get("group") or "")),
        valid=valid,
        value=value if valid else None,
        vote=vote_of(read) if valid else None,
        error=unscored or (trajectory.get("error") if judge is None or not ungraded else str(judge.get("why"))),
        failure=None
        if valid
        else UNSCORED
        if unscored is not None
        else intern(_failure(observations, str(trajectory["stop"]), judge if ungraded else None)),
        stop=intern(str(trajectory["stop"])),
        turns=len(turns),
        calls=len(searches),
        copied_calls=sum(same_question(action["query"], question) for action in searches),
        malformed_turns=sum(turn["action"]["type"] == "malformed" for turn in turns),
        forged=int(counts.get("forged_observation", 0)),
        cached_calls=sum(bool(seen.get("cached")) for seen in observations),
        pairs=tuple(intern(f"{action['expert']}@@{action['skill']}") for action in searches),
        policy_prompt_tokens=_sum(turns, "prompt_tokens"),
        policy_completion_tokens=_sum(turns, "completion_tokens"),
        expert_prompt_tokens=_sum(usage, "prompt_tokens"),
        expert_completion_tokens=_sum(usage, "completion_tokens"),
        expert_requests=_sum(usage, "calls"),
        cost=float(sum(float(one.get("cost") or 0.0) for one in usage)),
        latency_s=float(timings.get("total_s", 0.0)),
        policy_s=float(timings.get("policy_s", 0.0)),
        expert_s=float(timings.get("expert_s", 0.0)),
        lenient=(value if lenient is None else lenient) if valid else None,
        groups=_one(tuple((str(name), str(label)) for name, label in groups.items())) if groups else (),
        cluster=None if cluster is None else str(cluster),
        judged=judged,
        row_digest=row_digest,
    )


@lru_cache(maxsize=4096)
def _one(groups: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The same object for the same labels: most rows share theirs."""
    return groups


def _judged(said: Any) -> Judged:
    if said not in get_args(Judged):
        raise ValueError(f"a judge says right, wrong or ungraded, not {said!r:.40}")
    return cast(Judged, intern(str(said)))


def _failure(observations: Sequence[Mapping[str, Any]], stop: str, judge: Mapping[str, Any] | None) -> str:
    if judge is not None:
        return f"judge: {judge.get('outcome') or UNGRADED}"
    for seen in reversed(observations):
        if seen.get("outcome") in _FAILURES:
            return f"{seen.get('expert')}: {seen['outcome']}"
    return stop


def _sum(records: Sequence[Mapping[str, Any]], key: str) -> int:
    return sum(int(record.get(key) or 0) for record in records)
