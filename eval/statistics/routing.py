"""Where the calls went: counts of pairs, and how concentrated they are.

The one idea: entropy over all calls falls both when a policy always asks the same pair and when it has learned to
choose; only the part of it that the family explains tells the two apart, so both are given.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from eval.facts import Facts


@dataclass(frozen=True)
class Routing:
    """Well-formed calls of valid trajectories, over all families. Entropies in bits; ``None`` without any call."""

    calls: int
    counts: dict[str, int]
    """Calls of each ``Expert@@Skill``, most frequent first, ties by name."""
    experts: dict[str, int]
    skills: dict[str, int]
    entropy_bits: float | None
    """Of the pairs over all calls: 0 when one pair takes all."""
    family_entropy_bits: float | None
    """Mean over families, weighted by their calls, of the entropy within each: 0 when every family has its own
    pair and keeps to it."""
    family_information_bits: float | None
    """``entropy_bits`` minus ``family_entropy_bits``: how much knowing the family tells about the pair. 0 for a
    policy that routes every family alike."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def routing(facts: Iterable[Facts]) -> Routing:
    """Counts and entropies over the valid trajectories of one arm."""
    families = pair_counts(fact for fact in facts if fact.valid)
    whole: Counter[str] = Counter()
    for counts in families.values():
        whole.update(counts)
    calls = whole.total()
    entropy = entropy_bits(whole)
    within = [(sum(counts.values()), entropy_bits(counts)) for counts in families.values()]
    inner = math.fsum(number * bits for number, bits in within if bits is not None) / calls if calls else None
    return Routing(
        calls=calls,
        counts=_ordered(whole),
        experts=_ordered(_halves(whole, 0)),
        skills=_ordered(_halves(whole, 1)),
        entropy_bits=entropy,
        family_entropy_bits=inner,
        family_information_bits=None if entropy is None or inner is None else max(0.0, entropy - inner),
    )


def pair_counts(facts: Iterable[Facts]) -> dict[str, dict[str, int]]:
    """Family -> pair -> number of well-formed calls; most frequent first, ties by name."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for fact in facts:
        counts[fact.group].update(fact.pairs)
    return {group: _ordered(counts[group]) for group in sorted(counts)}


def entropy_bits(counts: Mapping[str, int]) -> float | None:
    """Shannon entropy of a distribution given by counts: 0 bits when one pair takes all, log2(25) = 4.64
    bits when 25 pairs share evenly; ``None`` without any call."""
    total = sum(counts.values())
    if total == 0:
        return None
    shares = [count / total for count in counts.values() if count]
    return max(0.0, -math.fsum(share * math.log2(share) for share in shares))


def _halves(counts: Mapping[str, int], side: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for pair, number in counts.items():
        found[pair.split("@@", 1)[side]] += number
    return found


def _ordered(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
