"""Names: one normalisation, used everywhere, and the nearest names for a miss.

The one idea: two names are the same exactly when `normalise` maps them to the same text. A near miss is
never taken for a hit; it is refused together with the nearest names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache

_SEPARATORS = re.compile(r"[\s_-]+")
_LONGEST_NAME = 100
_LEAST_LIKENESS = 0.5


@lru_cache(maxsize=65536)
def normalise(name: str) -> str:
    """Fold a name: NFKC, case-folded, runs of spaces, `-` and `_` become one `_`, none at the ends.

    >>> normalise("  Chart-Problem  solver ")
    'chart_problem_solver'
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    # Case folding can leave a text that NFKC would compose again.
    return _SEPARATORS.sub("_", unicodedata.normalize("NFKC", folded)).strip("_")


def name_fault(name: str) -> str | None:
    """Say why a text can't be a name in `<search> Expert@@Skill: question </search>`, or None."""
    plain = unicodedata.normalize("NFKC", name)
    if not normalise(name):
        return f"{name!r} is not a name: it has no letter or digit"
    if len(plain) > _LONGEST_NAME:
        return f"the name {name[:20]!r}... is longer than {_LONGEST_NAME} characters"
    for mark in ("@@", ":", "<", ">"):
        if mark in plain:
            return f"the name {name!r} holds {mark!r}, which the protocol uses"
    if plain.startswith("@") or plain.endswith("@"):
        return f"the name {name!r} begins or ends with '@', which would run into '@@'"
    for character in plain:
        if unicodedata.category(character)[0] == "C" or character in "\u2028\u2029":
            return f"the name {name!r} holds the invisible character U+{ord(character):04X}"
    return None


def nearest(name: str, names: Iterable[str], n: int = 3) -> tuple[str, ...]:
    """Up to `n` of `names` that look like `name`, best first; ties keep the given order."""
    wanted = normalise(name)
    scored: list[tuple[float, int, str]] = []
    for index, candidate in enumerate(dict.fromkeys(names)):
        likeness = _likeness(wanted, normalise(candidate))
        if likeness >= _LEAST_LIKENESS:
            scored.append((-likeness, index, candidate))
    return tuple(candidate for _, _, candidate in sorted(scored)[:n])


def _likeness(wanted: str, candidate: str) -> float:
    if wanted == candidate:
        return 1.0
    matcher = SequenceMatcher(None, wanted, candidate, autojunk=False)
    bound = matcher.real_quick_ratio()
    likeness = matcher.ratio() if bound >= _LEAST_LIKENESS else 0.0
    # "chart" should find "Chart_Problem_Solver" although most letters differ in number.
    short, long = sorted((wanted, candidate), key=len)
    if len(short) >= 3 and short in long:
        likeness = max(likeness, _LEAST_LIKENESS + 0.4 * len(short) / len(long))
    return likeness
