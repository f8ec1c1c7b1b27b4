"""Counts, words and figures as the public harnesses read them, quirks included: for figures set beside
published ones. The rules without "official" in their names read answers better.
"""

from __future__ import annotations

import re
import string

from rewards.score import Score, judged, wrong
from rewards.scorers.vlmsareblind import format_of

_ROUND = re.compile(r"\([^)]*\)")
_FULL_ROUND = re.compile("（[^）]*）")
_CHINESE_MARKS = "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～、《》【】"
_MARKS = str.maketrans(dict.fromkeys(string.punctuation + _CHINESE_MARKS, " "))
_YES = frozenset(["yes", "yeah", "yep", "true", "是", "是的", "有", "包含", "可以", "能", "会", "正常"])
_NO = frozenset(
    ["no", "nope", "false", "否", "不是", "没有", "无", "不包含", "不能", "不会", "不可以", "不正常", "异常"]
)


def slake(gold: str, answer: str) -> Score:
    """SLAKE, after lmms-eval: the same words once brackets and punctuation are gone; yes and no have synonyms in
    both languages."""
    expected, read = _slake_words(gold), _slake_words(answer)
    return judged(read == expected, read, f"expected {expected!r:.100}, the harness reads {read!r:.100}")


def _slake_words(text: str) -> str:
    text = _FULL_ROUND.sub(" ", _ROUND.sub(" ", text.strip().lower()))
    words = " ".join(text.translate(_MARKS).split())
    if words in ("x ray", "xray"):
        return "xray"
    return "yes" if words in _YES else "no" if words in _NO else words


def ocrbench(gold: str, answer: str, group: str | None = None) -> Score:
    """OCRBench, after its own example.py: the gold text stands in the answer, case and line breaks apart; for
    handwritten formulas case counts and spaces do not. Raises ValueError for an empty gold answer."""
    if is_formula(group):
        expected, read = (text.strip().replace("\n", " ").replace(" ", "") for text in (gold, answer))
    else:
        expected, read = (text.lower().strip().replace("\n", " ") for text in (gold, answer))
    if not expected:
        raise ValueError("the gold answer is empty")
    inside = expected in read
    return judged(inside, read, f"{gold!r:.100} {'stands' if inside else 'does not stand'} in the answer")


def is_formula(group: str | None) -> bool:
    """Whether an OCRBench row (by its source or its type) is a handwritten formula."""
    return (group or "").casefold() in ("hme100k", "handwritten mathematical expression recognition")


_COUNTS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
# Chinese characters are letters to these boundaries: "3" is read in "3 个" and not in "3个".
_COUNT = re.compile(rf"\b(?:([0-9]|1[0-9]|20)|({'|'.join(_COUNTS)}))\b")


def tallyqa(gold: str, answer: str) -> Score:
    """TallyQA, after VLMEvalKit: the first number from 0 to 20, in digits or English words.

    Raises ValueError when the gold answer is no whole number.
    """
    try:
        expected = int(gold.strip())
    except ValueError:
        raise ValueError(f"gold answer {gold!r:.100} is not a whole number") from None
    found = _COUNT.search(answer.lower())
    if found is None:
        return wrong(None, f"expected {expected}, and the harness reads no count")
    read = int(found[1]) if found[1] else _COUNTS.index(found[2])
    return judged(read == expected, str(read), f"expected {expected}, the harness reads {read}")


_FIRST_NUMBER = re.compile(r"\d+")
_FIRST_LETTER = re.compile(r"[a-z]")
_GRIDS = tuple(
    re.compile(pattern)
    for pattern in (r"\{(\d+)\}\s*\{(\d+)\}", r"\((\d+)\s*,\s*(\d+)\)", r"rows=\{(\d+)\}\scolumns=\{(\d+)\}")
)


def vlmsareblind(gold: str, answer: str, group: str | None = None) -> Score:
    """VLMsAreBlind, after lmms-eval: by task the bare words yes or no, the first number, the first small letter
    of the lower-cased answer (the t of "the letter is n" too), or rows and columns in three forms."""
    said, kind = answer.strip().lower(), format_of(gold, group)
    read = None
    if kind == "yes_no":
        read = said if said in ("yes", "no") else None
    elif kind == "grid":
        pair = next(filter(None, (form.search(said) for form in _GRIDS)), None)
        read = f"{pair[1]},{pair[2]}" if pair else None
    elif found := (_FIRST_LETTER if kind == "letter" else _FIRST_NUMBER).search(said):
        read = found[0]
    expected = gold.strip().lower()
    if read is None:
        return wrong(None, f"expected {expected!r:.100}, and the harness reads nothing of that form")
    return judged(read == expected, read, f"expected {expected!r:.100}, the harness reads {read!r:.100}")
