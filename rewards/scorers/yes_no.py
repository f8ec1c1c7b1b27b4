"""Yes/no answers in English and Chinese: one table of synonyms."""

from __future__ import annotations

from functools import lru_cache

from rewards.score import Score, judged, wrong
from rewards.scorers.text import plain, plain_answer

YES = frozenset({"yes", "true", "correct", "是", "是的", "对", "对的", "正确"})
NO = frozenset({"no", "false", "incorrect", "否", "不是", "不", "不对", "错", "错误", "不正确", "错的"})
# Short forms mean yes or no only when the gold answer is one: a gold "n" may be a letter or north.
_SHORT_YES = YES | {"y", "yeah", "yep", "有", "有的", "会", "可以"}
_SHORT_NO = NO | {"n", "nope", "没有", "不会", "不可以"}


@lru_cache(maxsize=2048)
def gold_yes_no(gold: str) -> str | None:
    """`yes` or `no` if the gold answer is one of the table's full forms, else None."""
    return _look_up(plain(gold), YES, NO)


def read_yes_no(answer: str) -> str | None:
    """`yes` or `no` if the whole answer says so, else None; a sentence around it is not read."""
    return _look_up(plain_answer(answer), _SHORT_YES, _SHORT_NO)


def _look_up(text: str, yes: frozenset[str], no: frozenset[str]) -> str | None:
    return "yes" if text in yes else "no" if text in no else None


def yes_no(gold: str, answer: str) -> Score:
    """Right when both say yes or both say no. Raises ValueError when the gold answer is neither."""
    expected = gold_yes_no(gold)
    if expected is None:
        raise ValueError(f"gold answer {gold!r:.100} is not a yes/no answer")
    read = read_yes_no(answer)
    if read is None:
        return wrong(None, f"expected {expected}, and the answer is neither yes nor no")
    return judged(read == expected, read, f"expected {expected}, read {read}")
