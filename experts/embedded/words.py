"""The words an embedded expert understands in a question: colours, kinds of shape, directions, extremes,
names.

Everything here is vocabulary, not grammar: a question is a bag of known words with an order, so a wording
never seen before still gives up its targets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Direction = Literal["left", "right", "above", "below"]

_COLOUR_WORDS = {
    "red": "red", "green": "green", "blue": "blue", "yellow": "yellow", "orange": "orange",
    "purple": "purple", "violet": "purple", "pink": "pink", "magenta": "pink", "cyan": "cyan",
    "turquoise": "cyan", "teal": "cyan", "brown": "brown", "gray": "gray", "grey": "gray",
    "black": "black", "white": "white",
}  # fmt: skip
_KIND_WORDS = {
    "circle": "circle", "disc": "circle", "disk": "circle", "dot": "circle",
    "square": "square", "triangle": "triangle", "star": "star", "rectangle": "rectangle",
    "pentagon": "pentagon", "hexagon": "hexagon", "diamond": "diamond",
}  # fmt: skip
_DIRECTION_WORDS: dict[str, Direction] = {
    "left": "left", "leftward": "left", "right": "right", "rightward": "right",
    "above": "above", "over": "above", "higher": "above", "top": "above", "upper": "above",
    "below": "below", "under": "below", "underneath": "below", "beneath": "below", "lower": "below",
    "bottom": "below",
}  # fmt: skip
_LEAST = {
    "lowest", "smallest", "least", "shortest", "minimum", "minimal", "min", "fewest", "tiniest", "weakest",
}  # fmt: skip
_MOST = {
    "highest", "largest", "biggest", "greatest", "most", "tallest", "longest", "maximum", "maximal", "max",
    "top", "strongest", "peak", "leading", "widest",
}  # fmt: skip
_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s", "8": "b", "n": "m"})
_YES_NO_START = {"do", "does", "did", "is", "are", "was", "were", "can", "has", "have", "will"}


@dataclass(frozen=True)
class Target:
    """A shape that a question speaks of; None where the question leaves it open."""

    colour: str | None
    kind: str | None


def words(text: str) -> list[str]:
    """Lower-case words of a text, digits kept, punctuation dropped."""
    return re.findall(r"[a-z0-9]+", text.lower())


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") else word


def targets(question: str) -> list[Target]:
    """Shapes named in the question, in order: a colour directly before a kind belongs to it."""
    found: list[Target] = []
    colour: str | None = None
    for word in words(question):
        kind = _KIND_WORDS.get(_singular(word))
        if kind is not None:
            found.append(Target(colour, kind))
            colour = None
        elif word in _COLOUR_WORDS:
            if colour is not None:
                found.append(Target(colour, None))
            colour = _COLOUR_WORDS[word]
        elif colour is not None:
            found.append(Target(colour, None))
            colour = None
    return [*found, Target(colour, None)] if colour is not None else found


def direction(question: str) -> Direction | None:
    """The first direction word of the question."""
    return next((_DIRECTION_WORDS[word] for word in words(question) if word in _DIRECTION_WORDS), None)


def extreme(question: str) -> Literal["most", "least"] | None:
    """Whether the question asks for the most or the least of something."""
    asked = set(words(question))
    if asked & _LEAST:
        return "least"
    return "most" if asked & _MOST else None


def wants_yes_no(question: str) -> bool:
    """Whether the question begins like one that is answered by Yes or No."""
    asked = words(question)
    return bool(asked) and (asked[0] in _YES_NO_START or {"yes", "no"} <= set(asked))


def stations(question: str, letters: str = "ABCD") -> tuple[str, str] | None:
    """The first two different station letters of the question; None where fewer are named.

    A small "a" is an article, and so is an "A" that begins the question.
    """
    named: list[str] = []
    tokens = re.findall(r"[A-Za-z0-9]+", question)
    for position, token in enumerate(tokens):
        article = token == "A" and position == 0
        if token in letters and len(token) == 1 and not article and token not in named:
            named.append(token)
    return (named[0], named[1]) if len(named) >= 2 else None


def names(question: str) -> list[str]:
    """Names in a question: capitalised words behind the first one, and single letters other than the article."""
    found = re.findall(r"[^\W\d_]+", question)
    return [
        word
        for place, word in enumerate(found)
        if (len(word) == 1 and word not in "aA") or (place > 0 and word[0].isupper() and word[1:].islower())
    ]


def same_name(first: str, second: str) -> bool:
    """Whether two spellings are one name: blind to case and to letters that look alike, with one slip of the reader
    more for every eight characters."""
    one, two = _looks(first), _looks(second)
    blocks = SequenceMatcher(None, one, two, autojunk=False).get_matching_blocks()
    longer = max(len(one), len(two))
    return longer - sum(block.size for block in blocks) <= longer // 8


def _looks(name: str) -> str:
    return name.lower().replace("rn", "m").translate(_ALIKE)


def mentions(question: str, label: str) -> bool:
    """Whether a label read in a picture stands in the question, as a run of as many words."""
    wanted, asked = words(label), words(question)
    size = len(wanted)
    runs = (asked[at : at + size] for at in range(len(asked) - size + 1))
    return size > 0 and any(same_name(" ".join(run), " ".join(wanted)) for run in runs)
