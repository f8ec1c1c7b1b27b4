"""Questions of one wording whose calls are divided between skills.

The one idea: where the same words lead to different skills, either the picture decides (and the shares of right
answers are high under both), or the policy wavers. A wording is a question with its particulars masked: numbers,
quoted parts, and capitalised words after the first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eval.facts import Facts
from eval.report.failures import skill_of

LEAST_CALLS, LEAST_SHARE = 4, 0.1
MOST = 20
_LONGEST = 300
_QUOTED = re.compile(r"\"[^\"]{1,80}\"|“[^”]{1,80}”|‘[^’]{1,80}’")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z][\w-]*")


@dataclass(frozen=True)
class UnderSkill:
    """Trajectories of one wording whose first call named ``skill``, and how many were right."""

    skill: str
    n: int
    right: int


@dataclass(frozen=True)
class Split:
    wording: str
    n: int
    skills: tuple[UnderSkill, ...]
    """Most frequent first."""


def wording(question: str) -> str:
    """The question on one line, particulars masked, at most 300 characters."""
    text = " ".join(question.split())[:_LONGEST]
    text = _QUOTED.sub("‹…›", text)
    text = _NAME.sub("‹name›", text)
    return _NUMBER.sub("#", text)


def splits(facts: Iterable[Facts], arm: str, questions: Mapping[str, str]) -> list[Split]:
    """Wordings with at least 4 trajectories whose second skill takes at least a tenth; those most divided first.
    ``questions`` are texts by row id; rows without one are left out."""
    found: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        if fact.arm == arm and fact.valid and fact.pairs and fact.row_id in questions:
            found[wording(questions[fact.row_id])][skill_of(fact.pairs[0])].append(fact.verdict == "right")
    divided = []
    for text, skills in found.items():
        under = [UnderSkill(skill, len(seen), sum(seen)) for skill, seen in skills.items()]
        under.sort(key=lambda one: (-one.n, one.skill))
        n = sum(one.n for one in under)
        if n >= LEAST_CALLS and len(under) > 1 and under[1].n >= LEAST_SHARE * n:
            divided.append(Split(text, n, tuple(under)))
    return sorted(divided, key=lambda one: (one.skills[0].n - one.n, one.wording))[:MOST]


def wavering(facts: Iterable[Facts], arm: str) -> tuple[int, int]:
    """Questions whose samples named different skills in their first calls, of those with two calling samples."""
    first: dict[str, list[str]] = defaultdict(list)
    for fact in facts:
        if fact.arm == arm and fact.valid and fact.pairs:
            first[fact.row_id].append(skill_of(fact.pairs[0]))
    several = [skills for skills in first.values() if len(skills) > 1]
    return sum(len(set(skills)) > 1 for skills in several), len(several)
