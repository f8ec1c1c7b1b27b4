"""Rules that say loudly when a run goes wrong: collapse, NaN, rollout and actor that disagree.

One idea: pure functions over the stream of step records; each warning has a name and is given once. Because they need
nothing but the records, whoever watches a run from its files finds the alarms that the run itself raised.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WINDOW = 10
GIVEN_UP_ABOVE = 0.5
"""Share of a step's rows, as `watch.given_up_above` has it where nothing is said."""
_NUMBERS = ("entropy", "grad_norm", "policy_loss", "kl", "reward")


@dataclass(frozen=True)
class Alarm:
    """name: which rule. text: what was seen, and what to do."""

    name: str
    text: str
    fatal: bool = False


@dataclass(frozen=True)
class Raised:
    """An alarm in a run's history. step, last: the first and the last step that raised it. times: how many did."""

    alarm: Alarm
    step: int
    last: int
    times: int


def alarms(
    history: Sequence[Mapping[str, Any]], *, max_gap: float, given_up_above: float = GIVEN_UP_ABOVE
) -> list[Alarm]:
    """Alarms that the newest record of `history` (step records in order) gives rise to."""
    rules = Rules(max_gap, given_up_above)
    found: list[Alarm] = []
    for record in history:
        found = rules.judge(record)
    return found


def raised(
    history: Iterable[Mapping[str, Any]], *, max_gap: float, given_up_above: float = GIVEN_UP_ABOVE
) -> list[Raised]:
    """All alarms of a run, by the step at which each was first raised; its text is that of the first time."""
    rules, found = Rules(max_gap, given_up_above), dict[str, Raised]()
    for record in history:
        for alarm in rules.judge(record):
            known = found.get(alarm.name) or Raised(alarm, record["step"], record["step"], 0)
            found[alarm.name] = Raised(known.alarm, known.step, record["step"], known.times + 1)
    return list(found.values())


class Rules:
    """Judges step records one after another. Windows are of `WINDOW` steps; before two of them nothing falls or rises.

    max_gap: largest |p_actor - p_rollout| that is rounding. given_up_above: share of a step's rows that may be given
    up before it is fatal.
    """

    def __init__(self, max_gap: float, given_up_above: float = GIVEN_UP_ABOVE) -> None:
        self._max_gap, self._given_up_above = max_gap, given_up_above
        self._last: deque[Mapping[str, Any]] = deque(maxlen=WINDOW)
        self._first: list[Mapping[str, Any]] = []
        self._best: float | None = None
        self._tidiest: float | None = None
        self._steps = 0

    def judge(self, now: Mapping[str, Any]) -> list[Alarm]:
        """Alarms that `now`, the next record, gives rise to."""
        self._steps += 1
        self._last.append(now)
        if len(self._first) < WINDOW:
            self._first.append(now)
        found = [*_numbers(now), *_gap(now, self._max_gap), *_experts(now)]
        found += _given_up(now, self._given_up_above)
        if len(self._last) == WINDOW:
            found += self._windows(now["step"])
        return found

    def _windows(self, step: int) -> list[Alarm]:
        found: list[Alarm] = []
        reward, malformed = _mean("reward", self._last), _mean("malformed", self._last)
        self._best = _better(max, self._best, reward)
        self._tidiest = _better(min, self._tidiest, malformed)
        if self._steps < 2 * WINDOW:
            return found
        if self._best is not None and reward is not None and reward < self._best - 0.5:
            text = f"step {step}: reward fell from {self._best:.2f} to {reward:.2f}"
            found.append(Alarm("reward_collapse", text, fatal=True))
        before, after = _mean("entropy", self._first), _mean("entropy", self._last)
        if before is not None and after is not None and after > 3 * max(before, 0.05):
            found.append(Alarm("entropy_rising", f"step {step}: entropy rose from {before:.2f} to {after:.2f}"))
        if self._tidiest is not None and malformed is not None and malformed > self._tidiest + 0.3:
            found.append(
                Alarm(
                    "malformed_rising",
                    f"step {step}: the share of malformed rollouts rose from {self._tidiest:.0%} to {malformed:.0%}",
                )
            )
        before, after = _mean("cut_turns", self._first), _mean("cut_turns", self._last)
        if before is not None and after is not None and after > before + 0.3:
            found.append(
                Alarm(
                    "turns_cut",
                    f"step {step}: {after:.0%} of rollouts hold a turn that ended at its token limit, {before:.0%} "
                    "did at first: the policy rambles, or protocol.max_turn_tokens is too small",
                )
            )
        return found


def _numbers(now: Mapping[str, Any]) -> list[Alarm]:
    found: list[Alarm] = []
    for key in _NUMBERS:
        value = now.get(key)
        # verl's log turns NaN and infinity into null; only a reward is unknown for a good reason (no valid rollout)
        lost = value is None and key in now and key != "reward"
        if lost or (isinstance(value, float) and not math.isfinite(value)):
            text = f"step {now['step']}: {key} is {'not a finite number' if lost else value}"
            found.append(Alarm("not_a_number", text, fatal=True))
    return found


def _gap(now: Mapping[str, Any], max_gap: float) -> list[Alarm]:
    gap, share = now.get("prob_gap") or 0.0, now.get("prob_gap_share") or 0.0
    if gap <= max_gap and share <= 0:
        return []
    return [
        Alarm(
            "rollout_actor_gap",
            f"step {now['step']}: rollout and actor probabilities differ by {gap:.2e} (mean over micro-batches; "
            f"{share:.0%} of them above {max_gap:.0e}): ids, masks, pictures or weights do not line up",
        )
    ]


def _experts(now: Mapping[str, Any]) -> list[Alarm]:
    if not now.get("invalid") or now["invalid"] <= 0.5 * now["rollouts"]:
        return []
    return [
        Alarm(
            "experts_failing",
            f"step {now['step']}: {now['invalid']} of {now['rollouts']} rollouts failed for "
            "want of experts; they are left out of the update",
        )
    ]


def _given_up(now: Mapping[str, Any], above: float) -> list[Alarm]:
    """Rows that came back as often as they may and were lost again: nothing is learned from them in this pass."""
    count = int(now.get("rows_given_up") or 0)
    if count == 0:
        return []
    rows = max(count, now.get("groups") or 0)
    text = (
        f"step {now['step']}: {count} of {rows} rows ({count / rows:.0%}) are given up: machinery lost their rollouts "
        "each time they came back; see expert_failures and logs/, or raise grpo.requeue"
    )
    if count > above * rows:
        return [Alarm("most_rows_given_up", f"{text} (more than watch.given_up_above, {above:.0%})", fatal=True)]
    return [Alarm("rows_given_up", text)]


def _better(choose: Any, known: float | None, value: float | None) -> float | None:
    if value is None or known is None:
        return known if value is None else value
    return choose(known, value)


def _mean(key: str, records: Iterable[Mapping[str, Any]]) -> float | None:
    """None where no record knows the value: a window of failed rollouts says nothing about the policy."""
    values = [r[key] for r in records if r.get(key) is not None]
    return sum(values) / len(values) if values else None
