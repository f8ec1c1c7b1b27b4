"""Why an arm was wrong, as far as the run itself can tell.

The one idea: nothing is guessed. Other trajectories of the same question (other arms, other samples) show which pairs
answered it right; a wrong trajectory is put into the first class that this evidence supports, and where there is no
evidence, that is said. The paper finds most failures at the boundary between two skills (G.1): questions where a pair
under a skill that the policy did not call answers right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eval.facts import Facts, Key

NO_CALL, RIGHT_PAIR, OTHER_EXPERT, OTHER_SKILL, UNKNOWN = "no call", "right pair", "other expert", "other skill", "none"
CLASSES = {
    NO_CALL: "no well-formed call was made",
    RIGHT_PAIR: "it called a pair that answered this question right elsewhere in the run",
    OTHER_EXPERT: "another expert under a skill that it called answered right",
    OTHER_SKILL: "only pairs under skills that it did not call answered right: a boundary case",
    UNKNOWN: "no pair answered this question right anywhere in the run",
}
"""Each wrong trajectory belongs to the first that holds; ``NO_CALL`` and ``RIGHT_PAIR`` are no routing faults."""


@dataclass
class Tries:
    """What single pairs did with one question: valid trajectories whose calls all went to that pair."""

    right: int = 0
    of: int = 0
    example: Key | None = None
    """One that was right."""


@dataclass(frozen=True)
class Case:
    """A wrong trajectory, with the pair that answered its question right where there is one."""

    key: Key
    family: str
    called: tuple[str, ...]
    kind: str
    other: str | None = None
    tries: Tries | None = None


@dataclass(frozen=True)
class Failures:
    """One arm on one split. ``one_skill``: wrong trajectories with a call that kept to one Level-1 skill to the end,
    of ``called``, those with a call."""

    arm: str
    valid: int
    cases: tuple[Case, ...]
    one_skill: int
    called: int

    @property
    def counts(self) -> dict[str, int]:
        """Wrong trajectories of each class; they add up to ``len(cases)``."""
        found = Counter(case.kind for case in self.cases)
        return {kind: found[kind] for kind in CLASSES}

    @property
    def boundaries(self) -> dict[tuple[str, str], list[Case]]:
        """(skill called last, skill of the pair that answers right) -> cases; most frequent first."""
        found: dict[tuple[str, str], list[Case]] = defaultdict(list)
        for case in self.cases:
            if case.kind == OTHER_SKILL and case.other is not None:
                found[skill_of(case.called[-1]), skill_of(case.other)].append(case)
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


Evidence = Mapping[str, Mapping[str, Tries]]
"""Row id -> pair -> tries."""


def evidence(facts: Iterable[Facts]) -> dict[str, dict[str, Tries]]:
    """What each pair did with each question, from all arms and samples."""
    found: dict[str, dict[str, Tries]] = defaultdict(dict)
    for fact in facts:
        if not fact.valid or len(set(fact.pairs)) != 1:
            continue
        tries = found[fact.row_id].setdefault(fact.pairs[0], Tries())
        tries.of += 1
        if fact.verdict == "right":
            tries.right += 1
            tries.example = tries.example or fact.key
    return dict(found)


def analyse(facts: Iterable[Facts], arm: str, known: Evidence) -> Failures:
    """The wrong trajectories of ``arm`` in the light of ``known``."""
    own = sorted((fact for fact in facts if fact.arm == arm and fact.valid), key=lambda fact: fact.key)
    cases = tuple(_case(fact, known.get(fact.row_id, {})) for fact in own if fact.verdict == "wrong")
    called = [case for case in cases if case.called]
    one_skill = sum(len({skill_of(pair) for pair in case.called}) == 1 for case in called)
    return Failures(arm, len(own), cases, one_skill, len(called))


def skill_of(pair: str) -> str:
    return pair.partition("@@")[2]


def _case(fact: Facts, tries: Mapping[str, Tries]) -> Case:
    if not fact.pairs:
        return Case(fact.key, fact.group, (), NO_CALL)
    right = {pair: one for pair, one in tries.items() if one.right}
    skills = {skill_of(pair) for pair in fact.pairs}
    same_skill = {pair: one for pair, one in right.items() if skill_of(pair) in skills}
    for kind, among in (
        (RIGHT_PAIR, {pair: one for pair, one in right.items() if pair in fact.pairs}),
        (OTHER_EXPERT, same_skill),
        (OTHER_SKILL, right),
    ):
        if among:
            other = min(among, key=lambda pair: (-among[pair].right / among[pair].of, -among[pair].right, pair))
            return Case(fact.key, fact.group, fact.pairs, kind, other, among[other])
    return Case(fact.key, fact.group, fact.pairs, UNKNOWN)
