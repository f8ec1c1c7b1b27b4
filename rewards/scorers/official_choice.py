"""Multiple choice as the public harnesses read it, quirks included: for figures set beside published ones.

The one idea: each function is one harness's reading of a letter, nothing more. Where a harness would go on to
ask a judge model, nothing is read here, and the answer is wrong. `choice` is the rule that reads answers well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from string import ascii_uppercase

from rewards.score import Score, judged, wrong
from rewards.scorers.choice import gold_index

Options = Sequence[str] | None
_ABCD = "ABCD"


def _judge(gold: str, choices: Options, read: str | None) -> Score:
    expected = ascii_uppercase[gold_index(gold, tuple(choices) if choices is not None else None)]
    if read is None:
        return wrong(None, f"expected {expected}, and the harness reads no option")
    return judged(read == expected, read, f"expected {expected}, the harness reads {read}")


def vstar(gold: str, answer: str, choices: Options) -> Score:
    """V*, after lmms-eval: the first of five patterns that finds one of A to D, in capitals."""
    return _judge(gold, choices, _vstar_letter(answer.strip().upper()))


_VSTAR = tuple(
    re.compile(pattern)
    for pattern in (
        r"\A([A-D])",
        r"(?:ANSWER|CHOICE|OPTION)(?:\s+IS)?[\s:]+([A-D])",
        r"\(([A-D])\)",
        r"([A-D])\s*[.)\]]",
        r"(?:\A|\s)([A-D])(?:\s|\Z)",
    )
)


def _vstar_letter(text: str) -> str | None:
    for pattern in _VSTAR:
        if found := pattern.search(text):
            return found[1]
    letters = [char for char in text if char in _ABCD]
    return letters[0] if len(letters) == 1 else None


_REFUSALS = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
_SPACED = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))


def refuses(answer: str) -> bool:
    """Whether the harnesses take an answer as a refusal, which is wrong without anybody being asked."""
    return any(refusal in answer for refusal in _REFUSALS)


def hrbench(gold: str, answer: str, choices: Options) -> Score:
    """HR-Bench, after VLMEvalKit and lmms-eval: one option letter as a word of its own, else one option's text
    inside the answer. Their third step, a judge model, is left out."""
    letters = ascii_uppercase[: len(choices)] if choices is not None else _ABCD
    return _judge(gold, choices, _hrbench_letter(answer, letters, choices or ()))


def _hrbench_letter(answer: str, letters: str, choices: Sequence[str]) -> str | None:
    if refuses(answer):
        return None
    words = set(answer.translate(_SPACED).split())
    named = [letter for letter in letters if letter in words]
    if len(named) == 1:
        return named[0]
    if not named and "Z" in words:
        return None
    lowered = answer.lower()
    inside = [letter for letter, text in zip(letters, choices, strict=False) if text.lower() in lowered]
    return inside[0] if len(inside) == 1 else None


def erqa(gold: str, answer: str, choices: Options) -> Score:
    """ERQA, after VLMEvalKit: the answer is the letter and nothing else, in either case."""
    said = answer.strip().upper()
    return _judge(gold, choices, said if len(said) == 1 and said in ascii_uppercase else None)


_MICROVQA = re.compile(r"answer is \*?\*?\(?([0-9]|[A-Z](?![0-9A-Za-z]))")


def microvqa(gold: str, answer: str, choices: Options) -> Score:
    """MicroVQA, after its own eval.py: the first "answer is (X)".

    Adapted in two places: an answer tag says "the answer is" by itself, and X may be a letter, since options are
    lettered here and numbered from 1 there.
    """
    text = answer if "answer is " in answer else f"answer is {answer.strip()}"
    found = _MICROVQA.search(text)
    if found is None:
        return _judge(gold, choices, None)
    if not found[1].isdigit():
        return _judge(gold, choices, found[1])
    return _judge(gold, choices, ascii_uppercase[int(found[1]) - 1] if found[1] != "0" else None)


_LETTERED = re.compile(r"\s*([abcdABCD])(?!\w)\s*[):.,\s]?\s*(.*)\Z", re.DOTALL)
_FENCED = re.compile(r"```json\n([^`]*)\n```")
_BRACED = re.compile(r"\{[^{}]*\}")


def msearthmcq(gold: str, answer: str, choices: Options) -> Score:
    """MSEarthMCQ, after its own evaluation_mcq.py: the field "answer" of a JSON reply (or the whole reply), by
    its capital letter if it begins with one of A to D, else by the option's exact text."""
    said = _json_answer(answer)
    lettered = _LETTERED.match(said)
    if lettered is not None:
        return _judge(gold, choices, lettered[1])
    text = said.strip()
    hits = [letter for letter, option in zip(ascii_uppercase, choices or (), strict=False) if option.strip() == text]
    return _judge(gold, choices, hits[0] if len(hits) == 1 else None)


def _json_answer(answer: str) -> str:
    plain = answer.replace("\\", "")
    found = _FENCED.search(plain)
    body = found[1] if found else (braced[0] if (braced := _BRACED.search(plain)) else None)
    if body is None:
        return plain
    try:
        reply = json.loads(re.sub(r",\s*([}\]])", r"\1", body))
    except (ValueError, RecursionError):
        return plain
    value = reply.get("answer") if isinstance(reply, dict) else None
    return value if isinstance(value, str) else plain


_GEOMETRY3K = tuple(
    re.compile(pattern)
    for pattern in (
        r"[Aa]nswer\s*[:=]\s*\(?([A-Da-d])\)?",
        r"\b([A-Da-d])\s*[.)\]]",
        r"^\s*\(?([A-Da-d])\)?$",
        r"\b([A-Da-d])\b",
    )
)


def geometry3k(gold: str, answer: str, choices: Options) -> Score:
    """Geometry3K with four options, after lmms-eval: the last of A to D, in either case, by the first of four
    patterns that finds one (so "a triangle" says A), else the first option whose text is in the answer."""
    said = answer.strip()
    for pattern in _GEOMETRY3K:
        if letters := pattern.findall(said):
            return _judge(gold, choices, letters[-1].upper())
    lowered = said.lower()
    inside = [letter for letter, text in zip(ascii_uppercase, choices or (), strict=False) if text.lower() in lowered]
    return _judge(gold, choices, inside[0] if inside else None)


RULES: dict[str, Callable[[str, str, Options], Score]] = {
    "vstar_official": vstar,
    "hrbench_official": hrbench,
    "erqa_official": erqa,
    "microvqa_official": microvqa,
    "msearthmcq_official": msearthmcq,
    "geometry3k_official": geometry3k,
}
