"""Which benchmark is scored by which rule, and `score`, the one way in.

The one idea: the rule follows from the data (benchmark, options, task group), never from how an answer looks.
A new benchmark is one entry in `_RULES`.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rewards.read_answer import answer_in
from rewards.score import Score, wrong
from rewards.scorers import official_choice, official_text
from rewards.scorers.choice import choice
from rewards.scorers.embedded import embedded
from rewards.scorers.exact import exact
from rewards.scorers.f1 import f1
from rewards.scorers.grid import grid
from rewards.scorers.letter import letter
from rewards.scorers.mathematics import mathematics
from rewards.scorers.mathvision import mathvision
from rewards.scorers.number import integer, number
from rewards.scorers.ocrbench import ocrbench
from rewards.scorers.relaxed import official, relaxed
from rewards.scorers.slake import slake
from rewards.scorers.text import MAX_CHARS, clip, too_long
from rewards.scorers.vlmsareblind import vlmsareblind
from rewards.scorers.yes_no import yes_no


@dataclass(frozen=True)
class Question:
    """What a rule may look at besides the answer."""

    gold: str
    choices: tuple[str, ...] | None
    group: str | None


Rule = Callable[[Question, str], Score]


def _choice(question: Question, answer: str) -> Score:
    return choice(question.gold, answer, question.choices)


def _harness(rule: Callable[[str, str, Sequence[str] | None], Score]) -> Rule:
    return lambda question, answer: rule(question.gold, answer, question.choices)


_RULES: dict[str, Rule] = {
    # benchmarks
    "embedded": lambda q, a: embedded(q.gold, a, q.group),
    "chartqa": lambda q, a: relaxed(q.gold, a),
    "chartqa_official": lambda q, a: official(q.gold, a),
    "vlmsareblind": lambda q, a: vlmsareblind(q.gold, a, q.group),
    "geometry3k": lambda q, a: mathematics(q.gold, a, q.choices),
    "mathvision": lambda q, a: mathematics(q.gold, a, q.choices),
    "ocrbench": lambda q, a: ocrbench(q.gold, a, q.group),
    "slake": lambda q, a: slake(q.gold, a),
    "tallyqa": lambda q, a: integer(q.gold, a),
    "vstar": _choice,
    "hrbench": _choice,
    "erqa": _choice,
    "microvqa": lambda q, a: choice(q.gold, a, q.choices, numbered=True),
    "msearthmcq": _choice,
    # the public harnesses' rules to the letter
    "vlmsareblind_official": lambda q, a: official_text.vlmsareblind(q.gold, a, q.group),
    "mathvision_official": lambda q, a: mathvision(q.gold, a, q.choices),
    "ocrbench_official": lambda q, a: official_text.ocrbench(q.gold, a, q.group),
    "slake_official": lambda q, a: official_text.slake(q.gold, a),
    "tallyqa_official": lambda q, a: official_text.tallyqa(q.gold, a),
    **{name: _harness(rule) for name, rule in official_choice.RULES.items()},
    # rules under their own names, for other data
    "exact": lambda q, a: exact(q.gold, a),
    "choice": _choice,
    "number": lambda q, a: number(q.gold, a),
    "integer": lambda q, a: integer(q.gold, a),
    "relaxed": lambda q, a: relaxed(q.gold, a),
    "mathematics": lambda q, a: mathematics(q.gold, a, q.choices),
    "yes_no": lambda q, a: yes_no(q.gold, a),
    "letter": lambda q, a: letter(q.gold, a),
    "grid": lambda q, a: grid(q.gold, a),
    "f1": lambda q, a: f1(q.gold, a),
}
_ALIASES = {
    "v*": "vstar", "vstarbench": "vstar", "hrbench4k": "hrbench", "hrbench8k": "hrbench",
    "msearth": "msearthmcq", "zwzrlvqa": "mathematics", "zwz": "mathematics",
    "chartqarelaxed": "chartqa", "geo3k": "geometry3k", "mathv": "mathvision", "exactmatch": "exact",
    "multiplechoice": "choice", "mcq": "choice", "numeric": "number", "relaxedaccuracy": "relaxed",
    "year": "integer", "count": "integer",
}  # fmt: skip
_MAX_READ, _MAX_EXPLANATION = 200, 400
_NOT_NAME = re.compile(r"[^a-z0-9*]")
_SQUEEZED = {_NOT_NAME.sub("", name): name for name in _RULES}


def benchmarks() -> tuple[str, ...]:
    """The names that `score` knows, sorted."""
    return tuple(sorted(_RULES))


@lru_cache(maxsize=256)
def rule_name(benchmark: str) -> str:
    """The table's name for a benchmark written as "ChartQA", "VLMs are blind" or "HR-Bench 4K".

    Raises ValueError with the nearest names when there is none.
    """
    squeezed = _NOT_NAME.sub("", unicodedata.normalize("NFKC", benchmark).casefold())
    name = _ALIASES.get(squeezed) or _SQUEEZED.get(squeezed)
    if name is not None:
        return name
    near = difflib.get_close_matches(squeezed[:60], [*_SQUEEZED, *_ALIASES], n=3, cutoff=0.6)
    names = dict.fromkeys(_ALIASES.get(n) or _SQUEEZED[n] for n in near)
    nearest, known = " or ".join(map(repr, names)), ", ".join(benchmarks())
    hint = f"did you mean {nearest}?" if nearest else f"known are {known}"
    raise ValueError(f"unknown benchmark {benchmark!r}: {hint}")


def score(
    benchmark: str,
    gold: str | Sequence[str],
    answer: str | None,
    choices: Sequence[str] | None = None,
    group: str | None = None,
) -> Score:
    """Score one answer by the rule of its benchmark.

    Args:
        benchmark: name in any case and spelling ("ChartQA"); see `benchmarks()`.
        gold: the right answer, or several of which any is right.
        answer: what the policy answered, None for no answer. If it still holds protocol tags it is read as
            the policy's text: the last complete answer tag of its own counts.
        choices: the options of a multiple-choice row, in order.
        group: the row's task group or family, where the benchmark has several answer formats.

    Raises:
        ValueError: unknown benchmark, no gold answer, or a gold answer that does not fit the rule (the row's
            fault, never the answer's: for any text as answer a score is returned).
    """
    rule = _RULES[rule_name(benchmark)]
    golds = _golds(gold)
    options = tuple(str(option) for option in choices) if choices is not None and len(choices) else None
    if answer is None:
        return wrong(None, "no answer")
    if too_long(answer):
        return wrong(None, f"ungradable: the answer has {len(answer)} characters, the limit is {MAX_CHARS}")
    text = answer_in(answer) if "<" in answer else answer
    if text is None or not text.strip():
        return wrong(None, "no answer: there is no text in it")
    best: Score | None = None
    for one in golds:
        if one.strip().casefold() == "nan":
            found = wrong(text, "the gold answer is nan, and nothing equals nan")
        else:
            found = rule(Question(one, options, group), text)
        if best is None or found.value > best.value:
            best = found
        if best.value == 1.0:
            break
    assert best is not None
    read = None if best.answer is None else clip(best.answer, _MAX_READ)
    return Score(best.value, read, clip(best.explanation, _MAX_EXPLANATION))


def _golds(gold: str | Iterable[object]) -> list[str]:
    golds = [gold] if isinstance(gold, str) else [str(one) for one in gold]
    if not golds or any(not one.strip() for one in golds):
        raise ValueError(f"no gold answer in {gold!r}")
    return golds
