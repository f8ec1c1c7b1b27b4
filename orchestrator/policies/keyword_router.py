"""Routing by the words of the question: the strongest rule that never looks at the picture.

The one idea: an expert scores one point for each distinct word that the question shares with its name,
aliases and description; a skill likewise with its names, descriptions and its subskills' keywords, where a
keyword (it may be several words) counts KEYWORD_POINTS. A pair scores the sum. Words are whole words, very
common ones do not count, a plural `s` does not matter. Where a wording is shared by several kinds of
pictures, this rule must be wrong for some.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable

from orchestrator.policies.descriptions import expert_text, skill_text
from orchestrator.policies.once import DelegateOnce
from registry.errors import UserFault
from registry.registry import Registry
from registry.schema import Skill
from registry.words import fold, holds

KEYWORD_POINTS = 1.0
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    _WORD.findall(
        "a an and any are as at be by can do does each for from give has have how if in into is it its many"
        " much no not of on one or other out say so than that the their them then there these they this to"
        " under up was what when where which who with you your image picture question answer"
    )
)


class KeywordRouter(DelegateOnce):
    """temperature 0: the best pair; ties go to the first expert, then the first skill, in the order of the
    registry. Above 0: a pair is drawn from the softmax of scores / temperature, by the episode's seed and
    `seed`."""

    def __init__(self, registry: Registry, temperature: float = 0.0, seed: int = 0) -> None:
        if temperature < 0 or not math.isfinite(temperature):
            raise UserFault(f"keyword router: temperature {temperature!r}", fix="give a number of at least 0")
        self.name = "keyword_router" if temperature == 0 else f"keyword_router:{temperature:g}"
        self.temperature, self._seed = temperature, seed
        self._experts = [(expert.name, _words([expert_text(expert)])) for expert in registry.experts]
        self._skills = [(skill.name, _words([skill_text(skill)]), _keywords(skill)) for skill in registry.skills]

    def pair_scores(self, question: str) -> dict[tuple[str, str], float]:
        """Score of every pair, in the order of the registry."""
        words, folded = _words([question]), fold(question)
        experts = [(name, float(len(words & known))) for name, known in self._experts]
        skills = [
            (name, len(words & known) + KEYWORD_POINTS * sum(holds(folded, keyword) for keyword in keywords))
            for name, known, keywords in self._skills
        ]
        return {(e, s): points_e + points_s for e, points_e in experts for s, points_s in skills}

    def pair_probabilities(self, question: str) -> dict[tuple[str, str], float]:
        """With what probability each pair is picked; sums to 1."""
        scores = self.pair_scores(question)
        best = max(scores, key=lambda pair: scores[pair])  # max keeps the first of equals
        if self.temperature == 0:
            return {pair: float(pair == best) for pair in scores}
        weights = {pair: math.exp((score - scores[best]) / self.temperature) for pair, score in scores.items()}
        total = sum(weights.values())
        return {pair: weight / total for pair, weight in weights.items()}

    def pick(self, question: str, seed: int) -> tuple[str, str]:
        chances = self.pair_probabilities(question)
        rng = random.Random(f"{self._seed}:{seed}")
        return rng.choices(list(chances), weights=list(chances.values()))[0]


def _keywords(skill: Skill) -> tuple[str, ...]:
    """Distinct folded keywords of all subskills."""
    return tuple(dict.fromkeys(fold(keyword) for sub in skill.subskills for keyword in sub.keywords))


def _words(texts: Iterable[str]) -> frozenset[str]:
    found = (word for text in texts for word in _WORD.findall(fold(text)))
    return frozenset(_singular(word) for word in found if word not in _COMMON)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
