"""In which order trajectories enter the report, so that its size limit cuts off what is least missed.

The one idea: the order is a rule, not a taste. Errors come first; then rows, the families by turns, and within a
family rows that the leading arm got wrong and got right by turns. A row brings the trajectories of all arms and
samples with it, so that they can be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from eval.facts import Facts, Key

MOST_ERRORS = 60
"""Errors that come first; further ones come with their rows."""


def choose(facts: Iterable[Facts], *, lead: str, arms: Sequence[str], rows_per_family: int | None = None) -> list[Key]:
    """Keys of all trajectories in that order, or of ``rows_per_family`` rows of each family. Samples of a row stand
    together, arms in the order of ``arms``, others (other temperatures) after them."""
    every = sorted(facts, key=lambda fact: fact.key)
    rank = {arm: place for place, arm in enumerate(arms)}
    rows: dict[tuple[str, str], list[Facts]] = defaultdict(list)
    for fact in every:
        rows[fact.group, fact.row_id].append(fact)
    families: dict[str, tuple[list[list[Facts]], list[list[Facts]]]] = defaultdict(lambda: ([], []))
    for (family, _), found in rows.items():
        missed = any(fact.arm == lead and fact.verdict == "wrong" for fact in found)
        families[family][0 if missed else 1].append(found)
    queues = [_by_turns(families[family])[:rows_per_family] for family in sorted(families)]
    errors = [fact.key for fact in every if not fact.valid][:MOST_ERRORS]
    first = set(errors)
    ordered = chain.from_iterable(
        sorted(row, key=lambda fact: (rank.get(fact.arm, len(rank)), fact.key)) for row in _by_turns(queues)
    )
    return errors + [fact.key for fact in ordered if fact.key not in first]


def _by_turns(queues: Iterable[list[list[Facts]]]) -> list[list[Facts]]:
    return [row for turn in zip_longest(*queues) for row in turn if row is not None]
