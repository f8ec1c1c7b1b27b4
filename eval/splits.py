"""The splits of an evaluation: which rows each has, how many of them, and which of them a shard has."""

from __future__ import annotations

from collections.abc import Sequence

from eval.config import TEST, UNSEEN, VALIDATION, EvalConfig
from eval.phases import StartPhase
from eval.row_sources import source_of
from eval.rows import Rows
from eval.shard import Shard
from registry.errors import UserFault


def load_splits(
    config: EvalConfig, limit: int | None, start_phase: StartPhase, shard: Shard | None = None
) -> list[Rows]:
    """The splits that an evaluation needs: test, unseen wordings if asked for, validation if pairs are chosen. A
    shard has all validation rows and its own part of the others. Of each the first row is read.

    Raises:
        UserFault: an unknown benchmark, data that cannot be had, a split without rows.
    """
    unseen = [UNSEEN] if config.rows.test_unseen else []
    names = [TEST, *unseen, *([VALIDATION] if config.needs_validation else [])]
    advance = start_phase("rows", len(names))
    splits = []
    for name in names:
        rows = load_rows(config, name, limit, shard if name != VALIDATION else None)
        rows.begin()
        splits.append(rows)
        advance()
    return splits


def load_rows(config: EvalConfig, split: str, limit: int | None = None, shard: Shard | None = None) -> Rows:
    """The rows of a split, at most ``limit`` (the first ones: a larger limit later adds to them); of those, the
    shard's. Nothing is read yet.

    Raises:
        UserFault: an unknown benchmark, or a split without rows.
    """
    benchmark = config.definition()
    wanted: int | None = getattr(config.rows, split)
    if split == VALIDATION and not wanted:
        wanted = None  # all of `parquet.validation`; a source without such a file says so
    if benchmark is not None and benchmark.generator is not None and getattr(config.parquet, split) is None:
        if split == VALIDATION and wanted is None:
            raise UserFault(
                "an arm chooses its pairs on validation rows, and rows.validation says there are none",
                where="rows.validation",
                fix="give a number, for example rows.validation=120",
            )
        wanted = benchmark.rows if wanted is None else wanted
    bounds = [bound for bound in (wanted, limit) if bound is not None]
    return Rows(split, source_of(config, benchmark, split), wanted=min(bounds, default=None), shard=shard)


def skipped(splits: Sequence[Rows]) -> dict[str, int]:
    """Rows of the test splits that could not be used, by reason."""
    found: dict[str, int] = {}
    for rows in splits:
        for reason, count in rows.skipped.items() if rows.split != VALIDATION else ():
            found[reason] = found.get(reason, 0) + count
    return found
