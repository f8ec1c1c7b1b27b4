"""Trajectories as the report shows them: which ones, and each as a flat card.

The one idea: the choice is a rule, not a taste. Of each family the same rows are shown for every arm, rows
that the trained policy got wrong first, and every error there is (up to a bound); the report states how
many of how many are shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.facts import Facts, Key

MOST_ERRORS = 60


@dataclass(frozen=True)
class Turn:
    """One turn: what the policy wrote, how it was read, what came back."""

    kind: str
    text: str
    dropped: str
    call: str
    outcome: str
    detail: str
    observation: str
    error: str


@dataclass(frozen=True)
class Card:
    """One trajectory. All texts are foreign: the template escapes them."""

    arm: str
    verdict: str
    family: str
    split: str
    stop: str
    pairs: tuple[str, ...]
    question: str
    picture: str
    turns: tuple[Turn, ...]
    answer: str
    gold: str
    explanation: str
    reward: str
    row_id: str
    latency_s: float
    error: str

    @property
    def search_text(self) -> str:
        """What the text filter looks through, in lower case."""
        return " ".join([self.row_id, self.question, self.answer, self.gold]).lower()


def choose(facts: Iterable[Facts], *, lead: str, arms: Sequence[str], rows_per_family: int) -> list[Key]:
    """Keys of the trajectories to show: for each family ``rows_per_family`` rows of the arm ``lead``, wrong
    ones first for half of them, with the same rows in all ``arms``; then every error not yet among them."""
    by_key = {fact.key: fact for fact in facts}
    families: dict[str, list[Facts]] = defaultdict(list)
    for fact in by_key.values():
        if fact.arm == lead and fact.sample == 0 and fact.valid:
            families[fact.group].append(fact)
    keys: list[Key] = []
    for group in sorted(families):
        ordered = sorted(families[group], key=lambda fact: fact.row_id)
        wrong = [fact for fact in ordered if fact.verdict == "wrong"]
        right = [fact for fact in ordered if fact.verdict == "right"]
        first = wrong[: max(rows_per_family // 2, rows_per_family - len(right))]
        for fact in [*first, *right[: rows_per_family - len(first)]]:
            keys += [key for arm in arms if (key := (arm, fact.row_id, 0)) in by_key]
    shown = set(keys)
    errors = sorted(fact.key for fact in by_key.values() if not fact.valid and fact.key not in shown)
    return keys + errors[:MOST_ERRORS]


def card_of(record: Mapping[str, Any], facts: Facts, reward: str) -> Card:
    """A card from a journal record; ``reward`` is the sentence about the reward."""
    trajectory = record["trajectory"]
    score = record["score"] or {}
    pictures = trajectory.get("pictures") or []
    return Card(
        arm=record["arm"],
        verdict=facts.verdict,
        family=facts.group,
        split=facts.split,
        stop=facts.stop,
        pairs=facts.pairs,
        question=_text(trajectory["question"]),
        picture=_text(pictures[0]["sha256"]) if pictures else "",
        turns=tuple(_turn(turn) for turn in trajectory["turns"]),
        answer=_text(trajectory.get("answer")),
        gold=_gold(trajectory.get("ground_truth")),
        explanation=_text(score.get("explanation")),
        reward=reward,
        row_id=facts.row_id,
        latency_s=facts.latency_s,
        error=_text(trajectory.get("error")),
    )


def _turn(turn: Mapping[str, Any]) -> Turn:
    action, seen = turn["action"], turn.get("observation") or {}
    call = f"{action['expert']}@@{action['skill']}" if action["type"] == "search" else ""
    detail = [
        f"subskill {seen['subskill']}" if seen.get("subskill") else "",
        f"chosen by {seen['reason']}" if seen.get("reason") else "",
        f"{1000 * seen['latency_s']:.0f} ms" if seen.get("latency_s") is not None else "",
        "from the cache" if seen.get("cached") else "",
    ]
    return Turn(
        kind=action["type"],
        text=_text(turn.get("text")),
        dropped=_text(turn.get("dropped_text")),
        call=call if call else _text(f"{action['kind']}: {action['detail']}") if action["type"] == "malformed" else "",
        outcome=_text(seen.get("outcome")),
        detail=", ".join(part for part in detail if part),
        observation=_text(seen.get("text")),
        error=_text(seen.get("error")),
    )


def _gold(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " or ".join(_text(item) for item in value)
    return _text(value)


def _text(value: Any) -> str:
    """Text that can be shown and stored: lone surrogates, control characters and changes of writing direction
    become the replacement character."""
    text = "" if value is None else str(value)
    return "".join(mark if mark.isprintable() or mark in _KEPT or _is_space(mark) else "\ufffd" for mark in text)


_KEPT = "\n\t\u200c\u200d"  # line end, tab, and the joiners that several scripts and emoji need


def _is_space(mark: str) -> bool:
    return mark.isspace() and ord(mark) > 0x9F
