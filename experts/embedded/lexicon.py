"""Which questions the embedded programs understand: those made of words they know, about what they can measure.

A program that answered any gibberish would teach a policy to write gibberish. These decline: a word that is neither in
the lexicon nor a name, a stammer, a telegram without its articles, a question that is a word short of a known form
(`forms.py`), or one without any word of the task at hand is not understood.
"""

from __future__ import annotations

import re

from experts.embedded.forms import garbled

MAX_WORDS = 40
_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")

_TASK_WORDS: dict[str, frozenset[str]] = {
    task: frozenset(words.split())
    for task, words in {
        "value_reading": "value values high height read much long length number amount many score level",
        "extreme_finding": (
            "highest lowest largest smallest biggest tallest shortest longest most least maximum minimum max min top"
        ),
        "object_counting": (
            "shape shapes circle circles square squares triangle triangles star stars rectangle rectangles ring rings "
            "pentagon pentagons hexagon hexagons object objects thing things dot dots blob blobs"
        ),
        "grid_sizing": "row rows column columns cell cells grid grids table tables",
        "colour_naming": "colour colours color colors largest smallest biggest",
        "position_judging": "left right above below under over beneath underneath higher lower",
        "right_triangle": "long length side sides value hypotenuse leg legs triangle distance",
        "contact_check": (
            "touch touches touching overlap overlaps overlapping cross crosses crossing crossings intersect intersects "
            "intersecting intersection intersections meet meets meeting contact tangent"
        ),
        "nesting_depth": "nested nesting inside within other square squares shape shapes outline outlines",
        "route_following": "path paths route routes line lines track tracks connection connections way ways connect",
    }.items()
}
_WORDS = """
    a about all am an and answer any are as at bar bars be been being beside between black blue both brackets
    brown by can chain chart charts circle circled circles color colored colors colour coloured colours count
    counting curly cyan diagram different do does drawing drawn each eg either every exactly example figure
    filled find first for form format found four from give given go goes going graph gray green grey has have
    having here hollow how image images in interlocked into is it its itself join just kind kinds label labelled
    labels lead leads letter lie lies line lines linked located lowest magenta me missing more must name named
    names no none not nothing now number numbers numerical of off on once one ones only onto or orange other
    others out outlined part picture pink place placed places plain please point points position purple put
    reach read red say see seen seven several should show showing shown shows side sides single six size sizes
    so solid some somewhere station stations style subway take tall teal tell ten than that the their them then
    there these they thin thing this those three through time times to together total triangle triangles two
    unknown up upon us use used using value values very want was we were what where whether which while white
    who whose will with without word words would write yellow yes you your
"""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ARTICLES = _set("the a an each other which what one no any this that every either")
# Words that stand behind an article, adjectives between them or not; in the plural they need none.
_COUNTABLE = _set(
    "circle square triangle star rectangle ring pentagon hexagon shape bar side chart picture image table"
)
_SUPERLATIVES = _set("highest lowest largest smallest biggest tallest shortest longest")
_ADJECTIVES = _SUPERLATIVES | _set(
    "red green blue yellow orange purple pink magenta cyan teal brown gray grey black white two other single "
    "missing unknown nested filled hollow solid outlined first same right colored coloured"
)
_NOT_BEFORE_THE = _set("colour color value length number circle square triangle star shape left right")
_KNOWN = frozenset(_WORDS.split()).union(*_TASK_WORDS.values())


def understood(task: str | None, question: str) -> bool:
    """True where the question is made of known words and names, without stammer or gap, and speaks of the task at hand.

    A name is a capitalised word behind the first, or a single letter. A task without words of its own takes any
    question. The colour of a shape must be asked for as one, and the bar with a value as a bar.
    """
    words = _WORD.findall(question)
    if not words or len(words) > MAX_WORDS:
        return False
    folded = [word.lower() for word in words]
    for place, (word, known) in enumerate(zip(words, folded, strict=True)):
        is_name = len(word) == 1 or (place > 0 and word[0].isupper() and word[1:].islower())
        if known not in _KNOWN and not is_name:
            return False
    if _stammers(folded) or _telegraphic(folded) or _asks_otherwise(task, folded) or garbled(question):
        return False
    about = _TASK_WORDS.get(task or "")
    return about is None or not about.isdisjoint(folded)


def _stammers(words: list[str]) -> bool:
    """The same one, two or three words twice in a row."""
    return any(
        words[i : i + size] == words[i + size : i + 2 * size]
        for size in (1, 2, 3)
        for i in range(len(words) - 2 * size + 1)
    )


def _telegraphic(words: list[str]) -> bool:
    """A superlative or one countable thing without an article ahead of it, or an article where a word is left out."""
    for place, word in enumerate(words):
        if word in _SUPERLATIVES or word in _COUNTABLE:
            ahead = place - 1
            while ahead >= 0 and words[ahead] in _ADJECTIVES and words[ahead] not in _ARTICLES:
                ahead -= 1
            if ahead < 0 or words[ahead] not in _ARTICLES:
                return True
        if word == "the" and place and words[place - 1] in _NOT_BEFORE_THE:
            return True
    return False


def _asks_otherwise(task: str | None, words: list[str]) -> bool:
    """A shape is asked for itself, not for its colour; a lowest value is asked for itself, not for its bar."""
    if task == "colour_naming":
        return "shape" in words and not {"colour", "color"} & set(words)
    return task == "extreme_finding" and "value" in words and "bar" not in words
