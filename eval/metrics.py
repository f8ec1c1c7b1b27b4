"""The numbers of an evaluation, each with its denominator; pure functions over ``Facts``.

The one idea: errors stand apart. A trajectory that the infrastructure ended is counted in ``errors`` and in
nothing else, so accuracy is over the trajectories that could have been right. Intervals come from a seeded
bootstrap over *questions* (several samples of one question are not independent).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eval.facts import Facts

RESAMPLES = 2000
Interval = tuple[float, float]


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
    """Questions with at least one valid trajectory."""
    trajectories: int
    valid: int
    errors: int
    """Trajectories ended by the infrastructure: in no other number but ``trajectories``."""
    status: str
    """``complete``, or ``incomplete`` where there are errors."""
    accuracy: float | None
    ci95: Interval | None
    pass_at_k: dict[int, float | None]
    malformed_rate: float | None
    """Share of valid trajectories with at least one malformed turn."""
    forged_rate: float | None
    """Share of valid trajectories in which the policy wrote an observation of its own."""
    copied_share: float | None
    """Share of well-formed calls whose sub-question is the question, up to whitespace."""
    cached_share: float | None
    """Share of well-formed calls that the call cache answered."""
    calls: float | None
    turns: float | None
    latency_s: Spread
    policy_prompt_tokens: float | None
    policy_completion_tokens: float | None
    expert_tokens: float | None
    stops: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def summarise(facts: Iterable[Facts], *, seed: int = 0, ks: Sequence[int] = (1,)) -> Summary:
    """Summarise trajectories of one arm. Order does not matter: rows are sorted before anything random is
    drawn."""
    every = sorted(facts, key=lambda fact: fact.key)
    valid = [fact for fact in every if fact.valid]
    calls = sum(fact.calls for fact in valid)
    return Summary(
        n=len({fact.row_id for fact in valid}),
        trajectories=len(every),
        valid=len(valid),
        errors=len(every) - len(valid),
        status="complete" if len(valid) == len(every) else "incomplete",
        accuracy=accuracy(valid),
        ci95=bootstrap_interval(valid, seed=seed),
        pass_at_k={k: mean_pass_at_k(valid, k) for k in ks},
        malformed_rate=_mean([fact.malformed_turns > 0 for fact in valid]),
        forged_rate=_mean([fact.forged > 0 for fact in valid]),
        copied_share=_ratio(sum(fact.copied_calls for fact in valid), calls),
        cached_share=_ratio(sum(fact.cached_calls for fact in valid), calls),
        calls=_mean([fact.calls for fact in valid]),
        turns=_mean([fact.turns for fact in valid]),
        latency_s=spread([fact.latency_s for fact in valid]),
        policy_prompt_tokens=_mean([fact.policy_prompt_tokens for fact in valid]),
        policy_completion_tokens=_mean([fact.policy_completion_tokens for fact in valid]),
        expert_tokens=_mean([fact.expert_tokens for fact in valid]),
        stops=dict(sorted(Counter(fact.stop for fact in every).items())),
    )


def accuracy(facts: Iterable[Facts]) -> float | None:
    """Mean score of the valid trajectories; ``None`` where there is none."""
    return _mean([fact.value for fact in facts if fact.value is not None])


def by_group(facts: Iterable[Facts], measure: Callable[[list[Facts]], float | None]) -> dict[str, float | None]:
    """``measure`` of each family, families in alphabetical order."""
    groups: dict[str, list[Facts]] = defaultdict(list)
    for fact in facts:
        groups[fact.group].append(fact)
    return {group: measure(groups[group]) for group in sorted(groups)}


def bootstrap_interval(facts: Sequence[Facts], *, seed: int, resamples: int = RESAMPLES) -> Interval | None:
    """95 % percentile interval of the accuracy, resampling whole questions.

    Where every question has the same mean (all right, all wrong, a single question) resampling shows no
    spread at all; the Wilson score interval over questions is given instead of a width of zero.
    """
    sums, counts = _per_question(facts)
    if not len(sums):
        return None
    means = sums / counts
    if np.all(means == means[0]):
        return wilson_interval(float(means[0]), len(means))
    draws = _draws(len(sums), seed, resamples)
    statistics = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    return _percentiles(statistics)


def paired_difference(
    before: Sequence[Facts], after: Sequence[Facts], *, seed: int, resamples: int = RESAMPLES
) -> tuple[float, Interval] | None:
    """Mean accuracy gain over the questions that both arms answered, with its 95 % bootstrap interval (same
    questions in both arms of every resample). ``None`` where they share no question."""
    first, second = _means(before), _means(after)
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return None
    gains = np.array([second[row] - first[row] for row in shared])
    statistics = gains[_draws(len(gains), seed, resamples)].mean(axis=1)
    return float(gains.mean()), _percentiles(statistics)


def wilson_interval(share: float, n: int) -> Interval:
    """95 % Wilson score interval of a share observed on ``n`` questions."""
    z = 1.959964
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def pass_at_k(n: int, correct: int, k: int) -> float | None:
    """Unbiased chance that at least one of ``k`` samples is right, from ``correct`` right ones among ``n``
    drawn.

    Undefined (``None``) for ``k > n``: that many samples were never drawn.
    """
    if not 0 <= correct <= n or k < 1:
        raise ValueError(f"pass@k needs 0 <= correct <= n and k >= 1, got n={n}, correct={correct}, k={k}")
    if k > n:
        return None
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def mean_pass_at_k(facts: Iterable[Facts], k: int) -> float | None:
    """Mean of ``pass_at_k`` over the questions with at least ``k`` valid samples; right means full score."""
    samples: dict[str, list[bool]] = defaultdict(list)
    for fact in facts:
        if fact.value is not None:
            samples[fact.row_id].append(fact.value >= 1.0)
    values = [pass_at_k(len(drawn), sum(drawn), k) for drawn in samples.values()]
    return _mean([value for value in values if value is not None])


def spread(values: Sequence[float]) -> Spread:
    """Mean, median and 95th percentile (linear interpolation between order statistics)."""
    if not values:
        return Spread(None, None, None)
    array = np.asarray(values, dtype=float)
    return Spread(float(array.mean()), float(np.percentile(array, 50)), float(np.percentile(array, 95)))


def pair_counts(facts: Iterable[Facts]) -> dict[str, dict[str, int]]:
    """Family -> pair -> number of well-formed calls; most frequent first, ties by name."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for fact in facts:
        counts[fact.group].update(fact.pairs)
    return {
        group: dict(sorted(counts[group].items(), key=lambda item: (-item[1], item[0]))) for group in sorted(counts)
    }


def entropy_bits(counts: Mapping[str, int]) -> float | None:
    """Shannon entropy of a distribution given by counts: 0 bits when one pair takes all, log2(25) = 4.64
    bits when 25 pairs share evenly; ``None`` without any call."""
    total = sum(counts.values())
    if total == 0:
        return None
    shares = [count / total for count in counts.values() if count]
    return max(0.0, -sum(share * math.log2(share) for share in shares))


def _per_question(facts: Iterable[Facts]) -> tuple[np.ndarray, np.ndarray]:
    """Score sums and trajectory counts of each question, questions sorted by id."""
    sums: dict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for fact in facts:
        if fact.value is not None:
            sums[fact.row_id] += fact.value
            counts[fact.row_id] += 1
    rows = sorted(counts)
    return np.array([sums[row] for row in rows]), np.array([counts[row] for row in rows], dtype=float)


def _means(facts: Iterable[Facts]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for fact in facts:
        if fact.value is not None:
            values[fact.row_id].append(fact.value)
    return {row: sum(scores) / len(scores) for row, scores in values.items()}


def _draws(n: int, seed: int, resamples: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n, size=(resamples, n))


def _percentiles(statistics: np.ndarray) -> Interval:
    low, high = np.percentile(statistics, [2.5, 97.5])
    return float(low), float(high)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
