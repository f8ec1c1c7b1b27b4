"""What is chosen on validation rows: how good every pair is, and every expert without a skill.

The one idea: it is measured once for a run folder and its validation rows, before the first arm runs; later starts
read what the folder keeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.arms import Choices
from eval.config import VALIDATION, EvalConfig
from eval.judge import Judge
from eval.matrix import Matrix, Pair, registry_pairs
from eval.measure_pairs import measure
from eval.phases import Clock, StartPhase
from eval.plain import load_plain, plain_pairs, save_plain
from eval.pools import Pools
from eval.redraw import load_matrix, save_matrix
from eval.row_digest import rows_digest
from eval.rows import Rows
from experts.pool import ExpertPool

_Load = Callable[[Path, int, str], Matrix | None]
_Save = Callable[[Path, int, Matrix, str], None]


@dataclass(frozen=True)
class Validation:
    """Measures pairs for the run in ``folder``. ``retry_errors``: again where calls failed."""

    config: EvalConfig
    pools: Pools
    folder: Path
    pool: ExpertPool
    judge: Judge
    retry_errors: bool
    start_phase: StartPhase
    clock: Clock

    async def choices(self, splits: Sequence[Rows]) -> Choices:
        """What the arms of the configuration need. Raises UserFault where the folder measured other rows, and where no
        answer can be scored here."""
        matrix = plain = None
        if self.config.needs_matrix:
            with self.clock.phase("matrix"):
                pairs = registry_pairs(self.pools.registry)
                matrix = await self._measured(splits, "matrix", pairs, load_matrix, save_matrix)
        if self.config.needs_plain:
            with self.clock.phase("experts alone"):
                pairs = plain_pairs(self.pools.registry, self.pools.plain)
                plain = await self._measured(splits, "experts alone", pairs, load_plain, save_plain)
        return Choices(matrix, plain=plain)

    async def _measured(
        self, splits: Sequence[Rows], name: str, pairs: Sequence[Pair], load: _Load, save: _Save
    ) -> Matrix:
        rows = next(rows for rows in splits if rows.split == VALIDATION)
        tasks = await asyncio.to_thread(lambda: [entry.task for entry in rows])
        digest = rows_digest(tasks)
        saved = load(self.folder, len(tasks), digest)
        if saved is not None and not (self.retry_errors and saved.errors):
            return saved
        await self.judge.ready()
        advance = self.start_phase(name, len(tasks) * len(pairs))
        matrix = await measure(
            tasks,
            self.pool,
            pairs,
            judge=self.judge,
            concurrency=self.config.expert_concurrency,
            deadline_s=self.config.deadlines.call_s,
            on_done=advance,
        )
        save(self.folder, len(tasks), matrix, digest)
        return matrix
