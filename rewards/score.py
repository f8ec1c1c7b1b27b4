"""The result of scoring one answer: a value, the answer as it was read, and a sentence why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """`value` is 1.0 for right and 0.0 for wrong (only `f1` gives values between).

    `answer` is the answer as the rule read it (a letter, a number, "rows,columns"), None where nothing could
    be read. `explanation` is one short sentence for a reader of the record.
    """

    value: float
    answer: str | None
    explanation: str


def right(answer: str, why: str) -> Score:
    return Score(1.0, answer, why)


def wrong(answer: str | None, why: str) -> Score:
    return Score(0.0, answer, why)


def judged(is_right: bool, answer: str, why: str) -> Score:
    return Score(1.0 if is_right else 0.0, answer, why)
