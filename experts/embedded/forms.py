"""The forms of question that the embedded programs were written for, and what is a word short of them.

The one idea: a program answers questions in its own forms and, word by word, questions of other builds; one that would
be a known form but for a word that is missing or one too many is taken for garbled. So whoever passes a question on
gains nothing by leaving words out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE = re.compile(r"[^.?!]*")
_CLASSES: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "COLOUR": "red green blue yellow orange purple pink magenta cyan teal brown gray grey black white",
        "KIND": "circle square triangle star rectangle pentagon hexagon",
        "KINDS": "circles squares triangles stars rectangles pentagons hexagons",
        "SIDE": "left right",
        "WAY": "above below under over",
        "MOST": "highest lowest largest smallest biggest tallest shortest longest",
    }.items()
}
# NAME: a name or letter. (a|b): either; [a]: or without it.
_FORMS = """
what is the value of [the bar] NAME
what is the value of NAME in the (chart|triangle)
how (high|tall|long) is [the bar] NAME
how (high|tall) is the bar of NAME
what value does the chart show for NAME
what value does [the bar] NAME have
which value does [the bar] NAME have
(read|find) the value of [the bar] NAME
(read|find) the value of NAME in the (chart|triangle)
which (bar|one) is the MOST
which bar has the MOST value
which bar in the chart (is the MOST|has the MOST value)
name the bar with the MOST value
name the MOST bar
name the MOST bar in the chart
name the MOST one
which is the MOST bar
how many [COLOUR] (shapes|KINDS) are there
how many [COLOUR] (shapes|KINDS) are in the picture
how many [COLOUR] (shapes|KINDS) (can|do) you see
count [all] the [COLOUR] (shapes|KINDS)
count [all] the [COLOUR] (shapes|KINDS) in the (picture|image)
how many (shapes|KINDS) of any colour are there
how many (shapes|KINDS) are COLOUR
(what|which) (colour|color) is the ([MOST] KIND|MOST shape|MOST one)
what is the (colour|color) of the ([MOST] KIND|MOST shape|MOST one)
which (colour|color) does the ([MOST] KIND|MOST shape) have
(is the|can you see the|can you see a) [COLOUR] KIND SIDE of the [COLOUR] KIND
(is the|can you see the|can you see a) [COLOUR] KIND WAY the [COLOUR] KIND
is there a [COLOUR] KIND SIDE of the [COLOUR] KIND
is there a [COLOUR] KIND WAY the [COLOUR] KIND
does (the|a) [COLOUR] KIND lie SIDE of the [COLOUR] KIND
does (the|a) [COLOUR] KIND lie WAY the [COLOUR] KIND
are (the|the two) KINDS (touching|overlapping) [each other]
do (the|the two) KINDS (touch|overlap) [each other]
is the one KIND (touching|overlapping) the other KIND
(do they touch|are they touching) [each other]
how many rings are there
how many rings are in the picture
how many rings (can|do) you see
count the rings
count the rings in the picture
count [the] total number of KINDS in the (picture|image)
how many nested KINDS are there
how many nested KINDS (can|do) you see
how many KINDS lie in each other
count the nested KINDS
count the KINDS that lie in each other
how many times do the (COLOUR and COLOUR|two) lines (touch|cross) [each other]
how many times do the lines (touch|cross) [each other]
how many times does the COLOUR line (touch|cross) the COLOUR line
count the times that the [COLOUR and COLOUR] lines (touch|cross) [each other]
at how many points do the COLOUR line and the COLOUR line (touch|cross)
how many [single colored] (paths|routes|lines) (go|lead) from NAME to NAME
count the [one colored] (paths|routes|lines) [that go] from NAME to NAME
how many (paths|routes|lines) are there from NAME to NAME
count the number of rows and columns
count the number of rows and columns and answer with numbers in curly brackets
count the rows and columns of the table
what is the number of rows and columns
how many rows and columns are there
how many rows and columns does the table have
how many rows and columns are in the (picture|table)
how long is the side NAME
how long is the side NAME of the triangle
how long is NAME in the triangle
what is the length of [the side] NAME
what is the length of [the side] NAME (in|of) the triangle
"""


def garbled(question: str) -> bool:
    """Whether the question's first sentence lacks a word of a known form or has one too many, and is none itself."""
    return _garbled(tuple(_classes(question)))


def _classes(question: str) -> list[str]:
    """The words of the first sentence, those of a class as that class, names as NAME."""
    match = _SENTENCE.match(question)
    sentence = match[0] if match else ""
    found = []
    for place, word in enumerate(_WORD.findall(sentence)):
        folded = word.lower()
        letter = len(word) == 1 and folded != "a"
        name = letter or (place > 0 and word[0].isupper() and (len(word) == 1 or word[1:].islower()))
        found.append("NAME" if name else _class(folded))
    return found


def _class(word: str) -> str:
    return next((name for name, words in _CLASSES.items() if word in words), word)


@lru_cache(maxsize=4096)
def _garbled(words: tuple[str, ...]) -> bool:
    forms = _forms()
    if words in forms:
        return False
    size = len(words)
    return any(_one_off(words, form) for form in forms if abs(len(form) - size) == 1)


def _one_off(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a single word left out leads from the longer one to the other."""
    if len(one) > len(other):
        one, other = other, one
    same = next((i for i, word in enumerate(one) if word != other[i]), len(one))
    return tuple(one[same:]) == tuple(other[same + 1 :])


@lru_cache(maxsize=1)
def _forms() -> frozenset[tuple[str, ...]]:
    return frozenset(
        tuple(map(_class, text.split())) for line in _FORMS.strip().splitlines() for text in _written_out(line)
    )


def _written_out(line: str) -> list[str]:
    """A line with each choice made in each way."""
    choice = re.search(r"\(([^()\[\]]*)\)|\[([^\[\]]*)\]", line)  # the innermost first
    if choice is None:
        return [line]
    ways = choice[1].split("|") if choice[1] is not None else [choice[2], ""]
    return [text for way in ways for text in _written_out(line[: choice.start()] + way + line[choice.end() :])]
