"""Options that stand inside a question, and which option is the right one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from rewards.scorers.choice import gold_index
from rewards.scorers.text import plain

_LINE_MARK = re.compile(r"^[ \t]*(?:\(([A-Z])\)|([A-Z])[.):])(?=\s)", re.MULTILINE)
_MARK = re.compile(r"(?:(?<=\s)|\A)(?:\(([A-Z])\)|([A-Z])[.):])(?=\s)")
_HEADING = re.compile(r"\s*(?:options|choices|选项)\s*[:：]?\s*\Z", re.IGNORECASE)
_LABELLED = re.compile(r"\s*\(?([A-Z])[).:]\s*(\S.*)\Z", re.DOTALL)


def cut_options(question: str) -> tuple[str, tuple[str, ...] | None]:
    """The question without its lettered options, and the options: "(A) red (B) blue", or "A. red" line by line.

    The options are the last run of marks that begins at A and goes on letter by letter; runs of marks at the starts of
    lines come first, since an option's own text may speak of "(A)". A question without a run is returned as it is, with
    None. What follows the last option on a line of its own (an instruction) stays with the question.
    """
    found = _last_run(_LINE_MARK, question) or _last_run(_MARK, question)
    if not found:
        return question, None
    ends = [*(mark.start() for mark in found[1:]), len(question)]
    texts = [question[mark.end() : end].strip() for mark, end in zip(found, ends, strict=True)]
    texts[-1], _, rest = texts[-1].partition("\n")
    if not all(texts):
        return question, None
    head = _HEADING.sub("", question[: found[0].start()])
    return "\n".join(filter(None, (head.strip(), rest.strip()))), tuple(text.strip() for text in texts)


def _last_run(mark: re.Pattern[str], question: str) -> list[re.Match[str]]:
    run: list[re.Match[str]] = []
    found: list[re.Match[str]] = []
    for match in mark.finditer(question):
        letter = match[1] or match[2]
        if letter == "A":
            run = [match]
        elif run and len(run) < 26 and letter == ascii_uppercase[len(run)]:
            run.append(match)
        if len(run) >= 2:
            found = list(run)
    return found


def right_option(gold: object, choices: Sequence[str] | None, *, is_index: bool) -> str:
    """The letter of the right option, given as its number from 0, its letter, its text, or "B. its text".

    Raises ValueError when it is none of the options. Without options a letter is taken as it stands.
    """
    options = None if choices is None else tuple(choices)
    if is_index:
        index = int(gold) if isinstance(gold, float) and gold.is_integer() else int(str(gold))
        if options is None or not 0 <= index < len(options):
            raise ValueError(f"the right option is number {index}, and there are {len(options or ())}")
        return ascii_uppercase[index]
    text = str(gold)
    labelled = _LABELLED.match(text)
    if labelled is not None:
        index = ascii_uppercase.index(labelled[1])
        if options is None:
            return labelled[1]
        others = [option for place, option in enumerate(options) if place != index]
        if index < len(options) and plain(labelled[2]) not in map(plain, others):
            return labelled[1]
    return ascii_uppercase[gold_index(text, options)]
