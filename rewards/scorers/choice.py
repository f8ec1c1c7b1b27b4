"""Multiple choice: which option an answer names, by letter or by the option's own text.

The one idea: a letter counts only where it stands as a letter. "A pretty girl" begins with a word, "A1" is a
label and "AB" is two letters, so none of them chooses A; and only the letters of this question's options
exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_uppercase

from rewards.score import Score, judged, wrong
from rewards.scorers.numbers import parse_number
from rewards.scorers.text import fold, plain, plain_answer, strip_lead, unwrap

_MARKUP = str.maketrans("", "", "*$`")
_LEAD = re.compile(r"(?:(?:option|choice)\b|选项|故选|应选|选择|选)\s*:?\s*", re.IGNORECASE)
_LEADING = re.compile(r"[(\[]?\s*([A-Za-z])\s*([)\].:、]*)")
_BOXED = re.compile(r"\\boxed\s*\{([^{}]{1,40})\}")
_BRACKETED = re.compile(r"(?<![A-Za-z0-9])[(\[]([A-Z])[)\]]")
_DENIED = re.compile(
    r"(?:(?i:\bnot|n't|\bnever)|不是|不选|并非)\s*(?:(?i:option|choice)\s*)?[(\[]?[A-Z][)\]]?(?![A-Za-z0-9])"
)
_DECLARED = re.compile(
    r"(?:(?i:answer|option|choice)\s*(?:(?i:is)\b|[:=])?\s*(?:(?i:option|choice)\s+)?"
    r"|\b(?i:so|thus|therefore|hence|choose|chose|pick|select|is)\b\s*[,:]?\s*(?:(?i:it\s+is|it's)\s+)?"
    r"|(?:答案|选项?|选择|应为)\s*(?:是|为|:)?\s*)"
    r"([(\[]?)([A-Za-z])[)\]]?(?![A-Za-z0-9])"
)
# After a declared lower-case letter, or an A or I, a word would make it an article or a pronoun.
_ENDS = re.compile(r"\s*(?:$|[.,;:!?)\]、。]|because\b|since\b)")
_JOINED = re.compile(r"\s*[)\]]?\s*(?:,|/|&|、|(?i:and|or)\b|和|或)\s*[(\[]?[A-Z](?![A-Za-z0-9])")
_LONE_LETTER = re.compile(r"\s*[(\[]?[A-Z][)\].]*\s*")
_STOPS = "。,;!-"


def choice(gold: str, answer: str, choices: Sequence[str] | None, numbered: bool = False) -> Score:
    """Right when the answer names the gold option, by its letter or by its whole text.

    `gold` is a letter or an option's text. Without `choices` (options that stand only in the question)
    letters A to Z count, and a gold answer that is no letter is an error: the row is an open question.
    `numbered`: options are numbered from 1 as well. Raises ValueError when the gold answer is none of the
    options.
    """
    options = tuple(choices) if choices is not None else None
    return judge_option(gold, read_option(answer, options, numbered), options)


def judge_option(gold: str, read: int | None, options: tuple[str, ...] | None) -> Score:
    """The score of the option that was read (0 is A; None: no single one). Raises ValueError as `gold_index` does."""
    expected = gold_index(gold, options)
    if read is None:
        return wrong(None, f"expected {ascii_uppercase[expected]}, and the answer names no single option")
    letter = ascii_uppercase[read]
    return judged(read == expected, letter, f"expected {ascii_uppercase[expected]}, read {letter}")


def read_option(answer: str, options: tuple[str, ...] | None, numbered: bool = False) -> int | None:
    """Index of the option that an answer names (0 is A), or None when it names none or several."""
    count = len(options) if options is not None else 26
    text = unwrap(fold(answer)).translate(_MARKUP)
    text = _strip_leads(unwrap(strip_lead(text)))
    index = _leading_letter(text, count, alone=True)
    if index is None and options is not None:
        index = _option_text(answer, options)
        if index is None and numbered:
            index = _option_number(text, count)
    if index is None:
        index = _leading_letter(text, count)
    if index is None and (boxed := _BOXED.findall(text)):
        index = _leading_letter(unwrap(boxed[-1]), count, alone=True)
    if index is None:
        stated = _DENIED.sub(" ", text)
        index = _declared_letter(stated, count)
        if index is None:
            bracketed = {letter for letter in _BRACKETED.findall(stated) if ord(letter) - 65 < count}
            index = ord(bracketed.pop()) - 65 if len(bracketed) == 1 else None
    if index is None and "\n" in answer.strip():
        first_line = fold(answer.strip().partition("\n")[0])
        index = _leading_letter(_strip_leads(unwrap(strip_lead(first_line))), count, alone=True)
    return index


def _strip_leads(text: str) -> str:
    lead = _LEAD.match(text)
    return unwrap(text[lead.end() :]) if lead and lead.end() < len(text) else text


def _in_range(letter: str, count: int) -> int | None:
    index = ord(letter.upper()) - 65
    return index if index < count else None


def _leading_letter(text: str, count: int, alone: bool = False) -> int | None:
    """The letter that the text begins with: "B", "(B)", "B.", and unless `alone` also "B) text"."""
    match = _LEADING.match(text)
    if match is None:
        return None
    delimiter, rest = match[2], text[match.end() :]
    bare = rest.strip(" 。.,;!")
    if bare and alone:
        return None
    if bare:
        if delimiter and ((rest[:1].isascii() and rest[:1].isalnum()) or _LONE_LETTER.fullmatch(rest)):
            return None
        if not delimiter and (rest.lstrip()[:1] not in _STOPS or _JOINED.match(rest)):
            return None
        if not delimiter and rest[:1] == "-":  # "A-level"
            return None
    return _in_range(match[1], count)


def _declared_letter(text: str, count: int) -> int | None:
    """The last letter that the text declares: "the answer is B", "so B", "选B"."""
    found = None
    for match in _DECLARED.finditer(text):
        opener, letter = match.groups()
        rest = text[match.end() :]
        article = not opener and (letter.islower() or letter in "AI")
        if (article and not _ENDS.match(rest)) or _JOINED.match(rest):
            continue
        index = _in_range(letter, count)
        found = index if index is not None else found
    return found


def _option_number(text: str, count: int) -> int | None:
    number = text.strip("()[]. ")
    return int(number) - 1 if len(number) <= 2 and number.isdecimal() and 1 <= int(number) <= count else None


@lru_cache(maxsize=4096)
def _option_forms(option: str, letter: str) -> tuple[str, ...]:
    """How an option's text may be written back: as it stands, and without its own label ("(A) cat" is
    "cat").
    """
    text = fold(option)
    label = re.match(rf"[(\[]?{letter}[)\].:、]\s*(?=\S)", text)
    forms = {plain(option), plain(text[label.end() :])} if label else {plain(option)}
    return tuple(forms - {""})


def _option_text(answer: str, options: tuple[str, ...]) -> int | None:
    """The one option whose whole text, or whose number, the answer is."""
    folded = fold(answer)
    bare = plain_answer(folded)
    led = _strip_leads(folded)
    said = {plain(folded), bare, plain(led)} if led != folded else {plain(folded), bare}
    hits = [i for i, option in enumerate(options) if said & set(_option_forms(option, ascii_uppercase[i]))]
    if not hits and (number := parse_number(bare)) is not None:
        values = [parse_number(option) for option in options]
        same = [v is not None and (v.value, v.percent) == (number.value, number.percent) for v in values]
        hits = [i for i, equal in enumerate(same) if equal]
    return hits[0] if len(hits) == 1 else None


@lru_cache(maxsize=4096)
def gold_index(gold: str, options: tuple[str, ...] | None) -> int:
    """Index of the right option (0 is A), given by its letter or its text. Raises ValueError for none of them."""
    if options is not None and not 1 <= len(options) <= 26:
        raise ValueError(f"a choice question needs 1 to 26 options, this one has {len(options)}")
    index = _leading_letter(unwrap(fold(gold)), len(options) if options is not None else 26, alone=True)
    if index is None and options is not None:
        index = _option_text(gold, options)
    if index is None:
        given = "the row has none: is it an open question?" if options is None else f"they are {list(options)}"
        raise ValueError(f"gold answer {gold!r:.100} names none of the options; {given}")
    return index
