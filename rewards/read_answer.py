"""Finding the answer in what the policy wrote: its last complete answer tag, and nothing that others wrote.

The one idea: a policy's turn ends with its first complete call. Text behind it is forged (only the
environment writes observations), and a tag inside a thought, the question or an observation answers nothing.
All scans are linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_OBSERVATION = re.compile(r"<information>(?:(?!<information>).)*?</information>", re.DOTALL)
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL)
_TAG = re.compile(r"</?(?:think|search|information|answer)>")
_THINK, _THINK_END, _CALL_END = "<think>", "</think>", "</search>"


def own_text(turn: str) -> str:
    """The part of one turn's text that counts: thoughts taken out, cut behind the first complete call."""
    text = without_thoughts(turn)
    first_call = text.find(_CALL_END)
    if first_call >= 0:
        text = text[: first_call + len(_CALL_END)]
    return _OBSERVATION.sub(" ", text) if "</information>" in text else text


def without_thoughts(text: str) -> str:
    """The text without its closed thoughts, also without one that the prompt opened (templates of thinking
    models).

    A thought that never closes stays: there the first complete action counts.
    """
    if _THINK_END not in text:
        return text
    kept: list[str] = []
    start = 0
    head = text[: text.find(_THINK_END)]
    if not any(tag in head for tag in (_THINK, _CALL_END, "</answer>")):
        start = len(head) + len(_THINK_END)
    while True:
        opened = text.find(_THINK, start)
        closed = text.find(_THINK_END, opened) if opened >= 0 else -1
        if closed < 0:
            kept.append(text[start:])
            return " ".join(kept)
        kept.append(text[start:opened])
        start = closed + len(_THINK_END)


def answers(turns: Iterable[str]) -> list[str]:
    """The contents of all complete answer tags in the turns' own text, in order, spaces at their edges taken
    off.
    """
    return [found.strip() for turn in turns for found in _ANSWER.findall(own_text(turn))]


def read_answer(turns: Iterable[str]) -> str | None:
    """The answer of an episode: the last complete tag of the policy-written turns; None without one, "" if
    empty.
    """
    found = answers(turns)
    return found[-1] if found else None


def answer_in(text: str) -> str | None:
    """The answer in a text that may or may not hold protocol tags: without any, the text is the answer."""
    return read_answer([text]) if _TAG.search(text) else text
