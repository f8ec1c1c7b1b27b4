"""An answer by its benchmark's rules: the published one, and the lenient one beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval.benchmarks.program import run_tests, split_program
from eval.benchmarks.spec import PROGRAM_RULE, Benchmark
from rewards import Score, score


@dataclass(frozen=True)
class Verdict:
    """`official`: by the published rule. `lenient`: the same, or better where only the answer's form kept the published
    rule from taking it; equal to `official` for benchmarks without a lenient rule."""

    official: Score
    lenient: Score

    @property
    def differ(self) -> bool:
        return self.official.value != self.lenient.value


def verdict(
    benchmark: Benchmark,
    gold: str | Sequence[str],
    answer: str | None,
    *,
    choices: Sequence[str] | None = None,
    group: str | None = None,
) -> Verdict:
    """Score an answer (None: there was none); what stands in the answer tag is what a harness would see.

    The lenient value is never below the official one: what that takes is taken. Raises ValueError for a gold answer
    that does not fit the rule, UserFault where a program can't be run.
    """
    official = _score(benchmark.scorer.official, gold, answer, choices, group)
    rule = benchmark.scorer.lenient
    if rule is None or official.value >= 1.0:
        return Verdict(official, official)
    lenient = _score(rule, gold, answer, choices, group)
    return Verdict(official, lenient if lenient.value > official.value else official)


def misfit(
    benchmark: Benchmark, golds: Sequence[str], *, choices: Sequence[str] | None = None, group: str | None = None
) -> str | None:
    """Why one of a row's right answers does not fit a rule of its benchmark; `None`: all fit. No program is run."""
    options = None if choices is None else tuple(choices)
    for rule in filter(None, dict.fromkeys((benchmark.scorer.official, benchmark.scorer.lenient))):
        for gold in golds:
            fault = _program_misfit(gold) if rule == PROGRAM_RULE else _misfit(rule, gold, options, group)
            if fault is not None:
                return f"{fault} ({rule})"
    return None


@lru_cache(maxsize=1024)  # a benchmark's rows share few right answers
def _misfit(rule: str, gold: str, choices: tuple[str, ...] | None, group: str | None) -> str | None:
    try:
        score(rule, gold, "1", choices=choices, group=group)  # the rule reads its gold whatever is answered
    except ValueError as fault:
        return str(fault)
    return None


def _program_misfit(gold: str) -> str | None:
    try:
        split_program(gold)
    except ValueError as fault:
        return str(fault)
    return None


def _score(
    rule: str, gold: str | Sequence[str], answer: str | None, choices: Sequence[str] | None, group: str | None
) -> Score:
    if rule == PROGRAM_RULE:
        return run_tests(gold if isinstance(gold, str) else gold[0], answer)
    return score(rule, gold, answer, choices=choices, group=group)
