"""``scores.jsonl``: one line a trajectory with nothing but its score.

The one idea: sorted and without times, so that two runs of the same settings can be compared byte for byte, and a
statistician can work with the scores of single questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eval.facts import Facts
from eval.whole_file import write_whole

FILE = "scores.jsonl"


def scores_text(facts: Iterable[Facts]) -> str:
    """Lines sorted by arm, row and sample. ``value`` is null for an error; ``lenient`` is there only where the lenient
    rule's value is another one; ``answer`` is the answer as the rule read it, in the form in which votes are counted.
    """
    return "".join(json.dumps(_record(fact)) + "\n" for fact in sorted(facts, key=lambda fact: fact.key))


def _record(fact: Facts) -> dict[str, Any]:
    return {
        "arm": fact.arm,
        "row": fact.row_id,
        "sample": fact.sample,
        "split": fact.split,
        "group": fact.group,
        "value": fact.value,
        **({} if fact.lenient == fact.value else {"lenient": fact.lenient}),
        "answer": fact.vote,
        **({} if fact.cluster is None else {"question": fact.cluster}),
    }


def write_scores(facts: Iterable[Facts], path: Path) -> Path:
    """Write atomically. Raises OSError."""
    return write_whole(path, scores_text(facts))
