"""All numbers of one arm on one split, each with its denominator; pure functions over ``Facts``.

The one idea: errors stand apart. A trajectory that the infrastructure ended is counted in ``errors`` and
``failures`` and in nothing else, so accuracy is over the trajectories that could have been right. Where not
said otherwise a mean is over valid trajectories. Intervals and tests are in ``eval.statistics``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eval.facts import Facts
from eval.statistics.bootstrap import Interval, interval
from eval.statistics.groups import accuracy, by_group, macro_average
from eval.statistics.macro import macro_interval
from eval.statistics.samples import drawn_questions, mean_of, pass_questions, questions
from eval.statistics.self_consistency import sc_questions


@dataclass(frozen=True)
class Spread:
    """Mean, median and 95th percentile of one quantity per trajectory; ``None`` where nothing was
    measured."""

    mean: float | None
    p50: float | None
    p95: float | None


@dataclass(frozen=True)
class Summary:
    """All numbers of one arm on one split. Shares are in 0..1; ``None`` means an empty denominator, never
    0."""

    n: int
    """Rows with at least one valid trajectory."""
    questions: int
    """Those rows, counting once what asks one question (HR-Bench's rotated options); what intervals draw."""
    trajectories: int
    valid: int
    errors: int
    """Trajectories ended by the infrastructure: in no other number but ``trajectories``, ``failures``,
    ``accuracy_bounds`` and ``cost_total``."""
    failures: dict[str, int]
    """Errors by what failed ("Expert: outcome", or the reason to stop), most frequent first."""
    status: str
    """``complete``, or ``incomplete`` where there are errors."""
    accuracy: float | None
    """Mean score of valid trajectories: the micro average."""
    ci95: Interval | None
    """Of ``accuracy``, bootstrap by question."""
    accuracy_bounds: Interval | None
    """Accuracy over all trajectories if every error were wrong, and if every one were right."""
    macro: float | None
    """Mean over groups of their accuracies, each group counting the same; groups without a valid trajectory are
    left out."""
    macro_ci95: Interval | None
    """Of ``macro``, bootstrap by question within each group."""
    pass_at_k: dict[int, float | None]
    """Over the questions with at least k valid samples, unbiased; ``None`` where there is none."""
    sc_at_k: dict[int, float | None]
    """Self-consistency over the same questions, exact; see ``eval.statistics.self_consistency``."""
    pass_at_k_ci95: dict[int, Interval | None]
    sc_at_k_ci95: dict[int, Interval | None]
    """Of the two, bootstrap by question."""
    malformed_rate: float | None
    """Share of valid trajectories with at least one malformed turn."""
    malformed_turn_share: float | None
    """Share of the turns of valid trajectories that are malformed."""
    forged_rate: float | None
    """Share of valid trajectories in which the policy wrote an observation of its own."""
    copied_share: float | None
    """Share of well-formed calls whose sub-question is the question, up to whitespace."""
    cached_share: float | None
    """Share of well-formed calls that the call cache answered."""
    calls: float | None
    turns: float | None
    latency_s: Spread
    """Wall seconds of an episode."""
    policy_s: float | None
    """Mean seconds of an episode spent on the policy's turns; what is left of ``latency_s`` besides ``expert_s`` is
    the runner's own."""
    expert_s: float | None
    policy_prompt_tokens: float | None
    policy_completion_tokens: float | None
    expert_tokens: float | None
    expert_prompt_tokens: float | None
    expert_completion_tokens: float | None
    tokens: Spread
    """Of the whole system: read and written, policy and experts."""
    written_tokens: Spread
    """Of the whole system: written only."""
    expert_requests: float | None
    """Mean requests to expert models and tools; a call whose procedure has three steps makes three."""
    cost: float | None
    """Mean in the currency of the registry's prices, experts only."""
    cost_total: float
    """Sum over all trajectories, errors included: what was paid."""
    stops: dict[str, int]
    """Reasons to stop over all trajectories."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def summarise(facts: Iterable[Facts], *, seed: int = 0, ks: Sequence[int] = (1,)) -> Summary:
    """Summarise trajectories of one arm. Order does not matter: rows are sorted before anything random is
    drawn."""
    every = sorted(facts, key=lambda fact: fact.key)
    valid = [fact for fact in every if fact.valid]
    errors = len(every) - len(valid)
    calls = sum(fact.calls for fact in valid)
    drawn = drawn_questions(valid)
    by_pass = {k: pass_questions(valid, k) for k in ks}
    by_vote = {k: sc_questions(valid, k) for k in ks}
    return Summary(
        n=len(questions(valid)),
        questions=len(drawn),
        trajectories=len(every),
        valid=len(valid),
        errors=errors,
        failures=dict(Counter(sorted(fact.failure for fact in every if fact.failure is not None)).most_common()),
        status="complete" if errors == 0 else "incomplete",
        accuracy=accuracy(valid),
        ci95=interval(drawn, seed=seed),
        accuracy_bounds=_bounds(valid, errors),
        macro=macro_average(by_group(valid, accuracy).values()),
        macro_ci95=macro_interval(valid, seed=seed),
        pass_at_k={k: mean_of(passed) for k, passed in by_pass.items()},
        sc_at_k={k: mean_of(voted) for k, voted in by_vote.items()},
        pass_at_k_ci95={k: interval(passed, seed=seed) for k, passed in by_pass.items()},
        sc_at_k_ci95={k: interval(voted, seed=seed) for k, voted in by_vote.items()},
        malformed_rate=_mean([fact.malformed_turns > 0 for fact in valid]),
        malformed_turn_share=_ratio(sum(fact.malformed_turns for fact in valid), sum(fact.turns for fact in valid)),
        forged_rate=_mean([fact.forged > 0 for fact in valid]),
        copied_share=_ratio(sum(fact.copied_calls for fact in valid), calls),
        cached_share=_ratio(sum(fact.cached_calls for fact in valid), calls),
        calls=_mean([fact.calls for fact in valid]),
        turns=_mean([fact.turns for fact in valid]),
        latency_s=spread([fact.latency_s for fact in valid]),
        policy_s=_mean([fact.policy_s for fact in valid]),
        expert_s=_mean([fact.expert_s for fact in valid]),
        policy_prompt_tokens=_mean([fact.policy_prompt_tokens for fact in valid]),
        policy_completion_tokens=_mean([fact.policy_completion_tokens for fact in valid]),
        expert_tokens=_mean([fact.expert_tokens for fact in valid]),
        expert_prompt_tokens=_mean([fact.expert_prompt_tokens for fact in valid]),
        expert_completion_tokens=_mean([fact.expert_completion_tokens for fact in valid]),
        tokens=spread([fact.tokens for fact in valid]),
        written_tokens=spread([fact.written_tokens for fact in valid]),
        expert_requests=_mean([fact.expert_requests for fact in valid]),
        cost=_mean([fact.cost for fact in valid]),
        cost_total=math.fsum(fact.cost for fact in every),
        stops=dict(sorted(Counter(fact.stop for fact in every).items())),
    )


def spread(values: Sequence[float]) -> Spread:
    """Mean, median and 95th percentile (linear interpolation between order statistics)."""
    if not values:
        return Spread(None, None, None)
    array = np.asarray(values, dtype=float)
    return Spread(float(array.mean()), float(np.percentile(array, 50)), float(np.percentile(array, 95)))


def _bounds(valid: Sequence[Facts], errors: int) -> Interval | None:
    whole = len(valid) + errors
    if not whole:
        return None
    scores = math.fsum(fact.value or 0.0 for fact in valid)
    return scores / whole, (scores + errors) / whole


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
