"""Rows of a run whose data cannot be read (a folder moved, a hub that is offline), as the run folder knows them.

The one idea: numbers, plots and texts need of the data only which rows there are, and the journal names those that ran;
how many there should be, and what was left out, the last results said. Only pictures are nowhere but in the data.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.benchmarks.spec import Benchmark
from eval.benchmarks.tally import Tally
from eval.config import TEST, UNSEEN, VALIDATION, EvalConfig
from eval.journal import Journal
from eval.row_sources import Entry, Source
from eval.rows import Rows
from eval.scores import FILE as SCORES
from eval.shard import Shard
from orchestrator.task import Task
from registry.errors import UserFault


@dataclass(frozen=True)
class Unread:
    """Rows without their content. ``why``: they cannot be read. ``counts``: rows of each split, as far as the folder
    tells. ``shared``: the last results' figures on wordings that serve several families, which only the data tells."""

    why: UserFault
    splits: Sequence[Rows]
    counts: Mapping[str, int]
    shared: Mapping[str, Any]


def unread_rows(
    folder: Path,
    journal: Journal,
    config: EvalConfig,
    limit: int | None,
    shard: Shard | None,
    benchmark: Benchmark | None,
    why: UserFault,
) -> Unread:
    """The rows of the journal; under a ``limit`` that is smaller than an earlier one, those of the last results."""
    earlier = _earlier(folder)
    skipped = _counts(earlier.get("skipped"))
    splits, counts = [], {}
    for split in (TEST, *([UNSEEN] if config.rows.test_unseen else [])):
        ids = list(dict.fromkeys(fact.row_id for fact in journal.facts.values() if fact.split == split))
        most = _most(config, split, limit, shard, benchmark)
        if most is not None and len(ids) > most:
            kept = _scored(folder)
            ids = [row_id for row_id in ids if row_id in kept] or ids
        told = _counts(earlier.get("rows")).get(split, most)
        counts[split] = max(len(ids), told or 0)
        splits.append(Rows(split, Source(_bare(ids), lambda: None, tally=_tally(skipped if not splits else {}))))
    counts |= {name: count for name, count in _counts(earlier.get("rows")).items() if name == VALIDATION}
    shared = earlier.get("shared_wordings")
    return Unread(why, splits, counts, shared if isinstance(shared, dict) else {})


def _bare(ids: Sequence[str]) -> Callable[[Tally], Iterator[Entry]]:
    """Rows that are an id and nothing else."""
    return lambda _: (Entry(Task(row_id, "", "", "", (), None)) for row_id in ids)


def _tally(skipped: Mapping[str, int]) -> Callable[[], Tally]:
    return lambda: Tally("", reasons=Counter(skipped))  # pyright: ignore[reportArgumentType]


def _most(
    config: EvalConfig, split: str, limit: int | None, shard: Shard | None, benchmark: Benchmark | None
) -> int | None:
    """How many rows were asked for at most; ``None``: all, and nothing says how many that is."""
    whole = benchmark.rows if benchmark is not None and split == TEST and config.parquet.test is None else None
    bounds = [bound for bound in (getattr(config.rows, split), limit, whole) if bound is not None]
    if not bounds:
        return None
    count = min(bounds)
    return count if shard is None else max(0, -(-(count - shard.index + 1) // shard.count))


def _scored(folder: Path) -> set[str]:
    """Ids of the rows in the last results; none where they cannot be read."""
    try:
        with (folder / SCORES).open(encoding="utf-8") as file:
            return {json.loads(line)["row"] for line in file}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _earlier(folder: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _counts(found: Any) -> dict[str, int]:
    return {str(key): one for key, one in found.items() if isinstance(one, int)} if isinstance(found, dict) else {}
