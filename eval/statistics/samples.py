"""Several samples of one question: what is known of each, and pass@k.

The one idea: pass@k and sc@k are functions of one question's valid samples, and each is a mean over the
questions with at least k of them; where no question has so many, the number does not exist.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from eval.facts import Facts
from eval.statistics.bootstrap import Question

RIGHT = 1.0


def by_question(facts: Iterable[Facts]) -> dict[str, list[Facts]]:
    """Valid trajectories of each row, rows and samples in order."""
    found: dict[str, list[Facts]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: fact.key):
        if fact.value is not None:
            found[fact.row_id].append(fact)
    return dict(sorted(found.items()))


def questions(facts: Iterable[Facts]) -> list[Question]:
    """Score sum and number of valid trajectories of each row."""
    return _sums(facts, lambda fact: fact.row_id)


def drawn_questions(facts: Iterable[Facts]) -> list[Question]:
    """The same of what is drawn as one piece when an interval is made: a question with all rows that ask it."""
    return _sums(facts, lambda fact: fact.question)


def _sums(facts: Iterable[Facts], piece: Callable[[Facts], str]) -> list[Question]:
    sums: dict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for fact in facts:
        if fact.value is not None:
            sums[piece(fact)] += fact.value
            counts[piece(fact)] += 1
    return [(sums[name], counts[name]) for name in sorted(counts)]


def row_means(facts: Iterable[Facts], label: Callable[[Facts], str]) -> dict[str, dict[str, Question]]:
    """Label -> question -> sum of its rows' mean scores and number of its rows there: a row counts once, however many
    samples it has."""
    found: dict[str, dict[str, Question]] = defaultdict(dict)
    for own in by_question(facts).values():
        mean = math.fsum(fact.value or 0.0 for fact in own) / len(own)
        group = found[label(own[0])]
        total, count = group.get(own[0].question, (0.0, 0))
        group[own[0].question] = total + mean, count + 1
    return found


def question_means(facts: Iterable[Facts]) -> dict[str, float]:
    """Mean score of each row over its valid trajectories."""
    return {row: math.fsum(f.value or 0.0 for f in own) / len(own) for row, own in by_question(facts).items()}


def pass_at_k(n: int, correct: int, k: int) -> float | None:
    """Unbiased chance that at least one of ``k`` samples is right, from ``correct`` right ones among ``n``
    drawn.

    Undefined (``None``) for ``k > n``: that many samples were never drawn. Raises ValueError for counts that
    cannot be.
    """
    if not 0 <= correct <= n or k < 1:
        raise ValueError(f"pass@k needs 0 <= correct <= n and k >= 1, got n={n}, correct={correct}, k={k}")
    if k > n:
        return None
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def pass_questions(facts: Iterable[Facts], k: int) -> list[Question]:
    """Sum of ``pass_at_k`` over a question's rows with at least ``k`` valid samples, and number of these rows; right
    means full score."""
    return drawn_values(facts, lambda own: pass_at_k(len(own), sum((f.value or 0.0) >= RIGHT for f in own), k))


def drawn_values(facts: Iterable[Facts], value: Callable[[list[Facts]], float | None]) -> list[Question]:
    """One value for each row, put together by what is drawn as one piece; rows without a value are left out."""
    sums: dict[str, list[float]] = defaultdict(list)
    for own in by_question(facts).values():
        found = value(own)
        if found is not None:
            sums[own[0].question].append(found)
    return [(math.fsum(values), len(values)) for _, values in sorted(sums.items())]


def mean_of(drawn: Sequence[Question]) -> float | None:
    """Mean over all rows; ``None`` without one."""
    count = sum(number for _, number in drawn)
    return math.fsum(total for total, _ in drawn) / count if count else None
