"""One trajectory as the report shows it: a flat card of texts.

The one idea: every text is foreign. It is made showable here (see ``clean``), cut where it is very long, and from
there on handled as plain text only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eval.facts import Facts

HEAD, TAIL = 4000, 2000
"""Characters of a text that are kept when it is longer than both together."""
MOST_PICTURES = 6


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
    """One trajectory. ``pictures`` are SHA-256 sums of the question's first pictures, of ``picture_count``."""

    arm: str
    verdict: str
    family: str
    split: str
    stop: str
    pairs: tuple[str, ...]
    question: str
    pictures: tuple[str, ...]
    picture_count: int
    turns: tuple[Turn, ...]
    answer: str
    gold: str
    explanation: str
    lenient: str
    """Empty where the lenient rule says the same as the official one."""
    groups: tuple[str, ...]
    """"grouping: label", as the benchmark divides its rows."""
    reward: str
    row_id: str
    sample: int
    latency_s: float
    error: str


def card_of(record: Mapping[str, Any], facts: Facts, reward: str) -> Card:
    """A card from a journal record; ``reward`` is the sentence about the reward."""
    trajectory = record["trajectory"]
    score, lenient = record["score"] or {}, record.get("lenient") or {}
    pictures = trajectory.get("pictures") or []
    return Card(
        arm=clean(record["arm"]),
        verdict=facts.verdict,
        family=clean(facts.group),
        split=facts.split,
        stop=facts.stop,
        pairs=tuple(dict.fromkeys(facts.pairs)),
        question=_cut(clean(trajectory["question"])),
        pictures=tuple(clean(picture["sha256"]) for picture in pictures[:MOST_PICTURES]),
        picture_count=len(pictures),
        turns=tuple(_turn(turn) for turn in trajectory["turns"]),
        answer=_cut(clean(trajectory.get("answer"))),
        gold=_cut(_gold(trajectory.get("ground_truth"))),
        explanation=_cut(clean(score.get("explanation"))),
        lenient=_cut(f"{float(lenient['value']):g}: {clean(lenient.get('explanation'))}") if lenient else "",
        groups=tuple(f"{clean(name)}: {clean(label)}" for name, label in (record.get("groups") or {}).items()),
        reward=clean(reward),
        row_id=clean(facts.row_id),
        sample=facts.sample,
        latency_s=facts.latency_s,
        error=_cut(clean(facts.error)),
    )


def _turn(turn: Mapping[str, Any]) -> Turn:
    action, seen = turn["action"], turn.get("observation") or {}
    call = f"{action['expert']}@@{action['skill']}" if action["type"] == "search" else ""
    if action["type"] == "malformed":
        call = clean(f"{action['kind']}: {action['detail']}")
    detail = [
        f"subskill {seen['subskill']}" if seen.get("subskill") else "",
        f"chosen by {seen['reason']}" if seen.get("reason") else "",
        f"{1000 * seen['latency_s']:.0f} ms" if seen.get("latency_s") is not None else "",
        "from the cache" if seen.get("cached") else "",
    ]
    return Turn(
        kind=action["type"],
        text=_cut(clean(turn.get("text"))),
        dropped=_cut(clean(turn.get("dropped_text"))),
        call=call,
        outcome=clean(seen.get("outcome")),
        detail=clean(", ".join(part for part in detail if part)),
        observation=_cut(clean(seen.get("text"))),
        error=_cut(clean(seen.get("error"))),
    )


def _gold(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " or ".join(clean(item) for item in value)
    return clean(value)


def _cut(text: str) -> str:
    """The head and the tail of a very long text, and how much is missing between them."""
    missing = len(text) - HEAD - TAIL
    return text if missing <= 0 else f"{text[:HEAD]}\n[... {missing} characters left out here ...]\n{text[-TAIL:]}"


def clean(value: Any) -> str:
    """Text that can be shown and stored: lone surrogates, control characters and changes of writing direction
    become the replacement character."""
    text = "" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or mark in _KEPT or _is_space(mark) else "\ufffd" for mark in text)


_KEPT = "\n\t\u200c\u200d"  # line end, tab, and the joiners that several scripts and emoji need


def _is_space(mark: str) -> bool:
    return mark.isspace() and ord(mark) > 0x9F
