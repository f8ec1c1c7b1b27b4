"""The failure page: classes of wrong trajectories for each arm, boundaries between skills, and divided wordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from eval.config import TEST
from eval.facts import Facts, Key
from eval.matrix import Matrix
from eval.report.bundle import Bundle
from eval.report.cards import Card
from eval.report.failures import CLASSES, Case, Evidence, Failures, analyse, evidence
from eval.report.wordings import splits, wavering

MOST_CASES, MOST_BOUNDARIES = 16, 20
ReadCard = Callable[[Key], Card]


@dataclass(frozen=True)
class Ready:
    """What the failure page is drawn from; made once from all trajectories of the test split."""

    lead: Failures
    arms: Sequence[Failures]
    known: Evidence
    facts: Sequence[Facts]


def ready(facts: Sequence[Facts], arms: Sequence[str]) -> Ready | None:
    """The analysis of every arm, the first one leading; ``None`` where it answered nothing."""
    tests = [fact for fact in facts if fact.split == TEST]
    known = evidence(tests)
    found = [analyse(tests, arm, known) for arm in arms]
    if not found or not found[0].valid:
        return None
    return Ready(found[0], [one for one in found if one.valid], known, tests)


def failures_view(
    made: Ready, matrix: Matrix | None, questions: Mapping[str, str], read: ReadCard, bundle: Bundle
) -> dict[str, Any]:
    """Everything that the template shows. ``questions`` are texts by row id, for the wordings."""
    lead = made.lead
    boundaries = lead.boundaries
    wavers, several = wavering(made.facts, lead.arm)
    return {
        "arm": lead.arm.replace("_", " "),
        "wrong": len(lead.cases),
        "valid": lead.valid,
        "classes": [{"name": kind, "means": means, "n": lead.counts[kind]} for kind, means in CLASSES.items()],
        "one_skill": lead.one_skill,
        "called": lead.called,
        "arms": [
            {"title": one.arm.replace("_", " "), "wrong": len(one.cases), "valid": one.valid, "counts": one.counts}
            for one in made.arms
        ],
        "boundaries": [
            {"called": called, "right": right, "n": len(cases), "families": _families(cases)}
            for (called, right), cases in list(boundaries.items())[:MOST_BOUNDARIES]
        ],
        "boundary_count": len(boundaries),
        "cases": [_case(case, matrix, read, bundle) for case in _shown(list(boundaries.values()))],
        "case_count": lead.counts["other skill"],
        "splits": splits(made.facts, lead.arm, questions),
        "wavers": wavers,
        "several": several,
    }


def _shown(boundaries: Sequence[Sequence[Case]]) -> list[Case]:
    """Cases of all boundaries by turns."""
    turns = (case for turn in zip_longest(*boundaries) for case in turn if case is not None)
    return [case for _, case in zip(range(MOST_CASES), turns, strict=False)]


def _families(cases: Sequence[Case]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for case in cases:
        counts[case.family] = counts.get(case.family, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:4]


def _case(case: Case, matrix: Matrix | None, read: ReadCard, bundle: Bundle) -> dict[str, Any]:
    assert case.other is not None and case.tries is not None and case.tries.example is not None
    own, other = read(case.key), read(case.tries.example)
    called = case.called[-1]
    return {
        "question": own.question,
        "family": case.family,
        "gold": own.gold,
        "row": own.row_id,
        "picture": bundle.picture_index(own.pictures[0]) if own.pictures else None,
        "browsable": own.row_id in bundle.rows,
        "called": " then ".join(case.called),
        "answer": own.answer,
        "called_before": _measured(matrix, called, case.family),
        "other": case.other,
        "other_answer": other.answer,
        "other_arm": other.arm.replace("_", " "),
        "other_before": _measured(matrix, case.other, case.family),
        "right": case.tries.right,
        "of": case.tries.of,
    }


def _measured(matrix: Matrix | None, pair: str, family: str) -> float | None:
    if matrix is None or family not in matrix.families:
        return None
    expert, _, skill = pair.partition("@@")
    return matrix.accuracy((expert, skill), family)
