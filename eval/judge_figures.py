"""What became of the answers that a judge model was asked about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from eval.facts import UNGRADED, Facts
from eval.judge_prompt import VERSION
from eval.judge_settings import JudgeSettings


def judge_figures(settings: JudgeSettings | None, facts: Iterable[Facts]) -> dict[str, Any] | None:
    """``model``, ``prompt`` (its version), ``asked`` and ``ungraded`` trajectories, and ``why`` (the most frequent
    reason for no verdict). ``None``: no judge is set, and what the rule cannot read is wrong."""
    if settings is None:
        return None
    asked = [fact for fact in facts if fact.judged is not None]
    reasons = Counter(fact.error or "" for fact in asked if fact.judged == UNGRADED)
    return {
        "model": settings.model,
        "prompt": VERSION,
        "asked": len(asked),
        "ungraded": sum(reasons.values()),
        "why": reasons.most_common(1)[0][0] if reasons else None,
    }
