"""Made-up names for bars and sides: two or three of sixty fixed syllables, easy to spell in few tokens."""

from __future__ import annotations

from random import Random

from eval.benchmarks.embedded.drawing import Part

SYLLABLES: tuple[str, ...] = tuple(consonant + vowel for consonant in "bdfgkmnprstv" for vowel in "aeiou")
"""Every syllable is one consonant and one vowel, so a name has one spelling in syllables."""

# Pairs that spell a word which nobody wants to meet in a chart.
_UNWANTED = ("rape", "paki", "kike", "dago", "puta", "pedo", "nude", "sado", "negu", "nigu")


def draw_name(rng: Random, part: Part, syllables: tuple[int, ...] = (2, 3)) -> str:
    """A capitalised name that only this part of the world uses, e.g. "Kamori"."""

    def make() -> str | None:
        name = "".join(rng.sample(SYLLABLES, rng.choice(syllables))).capitalize()
        return None if any(bad in name.lower() for bad in _UNWANTED) else name

    return part.pick(make, content=lambda name: name)


def draw_names(rng: Random, part: Part, count: int, syllables: tuple[int, ...] = (2, 3)) -> tuple[str, ...]:
    """`count` names that share no beginning of four letters, so that none is taken for another."""
    names: dict[str, str] = {}
    while len(names) < count:
        name = draw_name(rng, part, syllables)
        names.setdefault(name[:4].lower(), name)
    return tuple(names.values())
