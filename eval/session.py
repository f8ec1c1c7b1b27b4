"""The phases of one start of an evaluation: what is measured beforehand, then arm after arm.

The one idea: the journal says what is done. For every arm the rows are read in order, those that the journal lacks are
run, and each trajectory is written the moment it ends; nothing of a row stays in memory behind that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from eval.arms import Choices, build_policy
from eval.config import VALIDATION, EvalConfig
from eval.feed import Feed
from eval.journal import Journal
from eval.judge import Graded, Judge
from eval.judge_again import judge_again
from eval.measure_pairs import right_pairs
from eval.phases import Clock, StartPhase
from eval.pools import Pools, View
from eval.row_digest import changed_row, row_digest
from eval.row_sources import Entry
from eval.rows import Rows
from eval.validation import Validation
from eval.variants import Variant, budget_of, samples_of, variants
from experts.pool import ExpertPool
from orchestrator.budget import Budget
from orchestrator.observation import check_room
from orchestrator.policy import Policy
from orchestrator.runner import run_episode
from orchestrator.task import Task
from registry.errors import UserFault


@dataclass(frozen=True, slots=True)
class Work:
    """One trajectory to run. ``digest``: of its row."""

    split: str
    entry: Entry
    sample: int
    digest: str


@dataclass
class Session:
    """What the phases of one invocation share."""

    config: EvalConfig
    pools: Pools
    folder: Path
    pool: ExpertPool
    journal: Journal
    splits: Sequence[Rows]
    judge: Judge
    retry_errors: bool
    start_phase: StartPhase
    clock: Clock
    choices: Choices = field(default_factory=Choices)

    async def run(self) -> int:
        """Run what the journal lacks; returns how many trajectories that was."""
        validation = Validation(
            self.config, self.pools, self.folder, self.pool, self.judge, self.retry_errors, self.start_phase, self.clock
        )
        self.choices = await validation.choices(self.splits)
        ran = 0
        if self.retry_errors:
            width = self.config.concurrency
            await judge_again(self.journal, self.judge, concurrency=width, start_phase=self.start_phase)
        for variant in variants(self.config):
            if self._may_be_pending(variant):
                ran += await self._run_variant(variant)
        self.journal.sync()
        return ran

    def _tests(self) -> list[Rows]:
        return [rows for rows in self.splits if rows.split != VALIDATION]

    def _is_pending(self, variant: Variant, row_id: str, sample: int) -> bool:
        known = self.journal.facts.get((variant.key, row_id, sample))
        return known is None or (self.retry_errors and known.failed)

    def _may_be_pending(self, variant: Variant) -> bool:
        """Whether the rows must be read for this arm: not where all ids are known, and all are in the journal."""
        samples = range(samples_of(self.config, variant))
        return any(
            not rows.read_through
            or any(self._is_pending(variant, row, sample) for row in rows.ids for sample in samples)
            for rows in self._tests()
        )

    def _pending(self, variant: Variant) -> Generator[Work, None, None]:
        samples = range(samples_of(self.config, variant))
        for rows in self._tests():
            for entry in rows:
                digest = row_digest(entry.task)
                for sample in samples:
                    self._check_row(variant, entry.task.row_id, sample, digest)
                    if self._is_pending(variant, entry.task.row_id, sample):
                        yield Work(rows.split, entry, sample, digest)

    def _check_row(self, variant: Variant, row_id: str, sample: int, digest: str) -> None:
        """Raises UserFault where the journal holds an answer to another question of that id."""
        known = self.journal.facts.get((variant.key, row_id, sample))
        if known is not None and known.row_digest not in (None, digest):
            raise changed_row(row_id, self.journal.path)

    def _steps(self, variant: Variant) -> int | None:
        """How many trajectories are still to run, as far as can be told beforehand."""
        counts = [rows.expected() for rows in self._tests()]
        if None in counts:
            return None
        done = sum(
            key[0] == variant.key and not (self.retry_errors and fact.failed)
            for key, fact in self.journal.facts.items()
        )
        whole = samples_of(self.config, variant) * sum(count or 0 for count in counts)
        return max(1, whole - done)

    async def _run_variant(self, variant: Variant) -> int:
        feed = Feed(self._pending(variant))
        try:
            if not await feed.any():
                return 0
            await self.judge.ready()
            with self.clock.phase(f"arm {variant.key}"):
                return await self._run_arm(variant, feed)
        finally:
            await feed.aclose()

    async def _run_arm(self, variant: Variant, feed: Feed[Work]) -> int:
        advance = self.start_phase(variant.key, self._steps(variant))
        budget = budget_of(self.config, variant)
        view = self.pools.view(variant.arm, self.choices.measured, self.pool)
        policy = build_policy(self.config, view.registry, variant, self.choices)
        ran = 0
        faults: list[Exception] = []

        async def worker() -> None:
            nonlocal ran
            while not faults:
                try:
                    work = await feed.get()
                except Exception as fault:  # of the rows: what has begun is finished and written first
                    faults.append(fault)
                    return
                if work is None:
                    return
                await self._run_one(variant, policy, view, work, budget)
                ran += 1
                advance()

        workers: list[asyncio.Task[None]] = []
        try:
            check_room(budget.max_observation_tokens, getattr(policy, "tokenizer", None))
            workers += [asyncio.create_task(worker()) for _ in range(self._width(variant))]
            await asyncio.gather(*workers)
        finally:
            for one in workers:
                one.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await policy.aclose()
        if faults:
            raise faults[0]
        return ran

    def _width(self, variant: Variant) -> int:
        """Episodes in flight."""
        rule = self.config.arms[variant.arm].policy is None
        return self.config.expert_concurrency if rule else self.config.concurrency

    async def _run_one(self, variant: Variant, policy: Policy, view: View, work: Work, budget: Budget) -> None:
        deadlines, task = self.config.deadlines, work.entry.task
        if self.config.arms[variant.arm].kind == "oracle":
            await self._ask_oracle(task)
        trajectory = await run_episode(
            task,
            policy,
            view,
            budget=budget,
            seed=self.config.seed,
            sample=work.sample,
            episode_deadline_s=deadlines.episode_s,
            turn_deadline_s=min(deadlines.call_s, deadlines.episode_s),
        )
        graded = Graded(None)
        unscored: str | None = None
        if trajectory.valid:
            try:
                graded = await self.judge.grade(task, trajectory.answer)
            except UserFault as fault:  # of this row, or of the sandbox: the other rows go on
                unscored = fault.what
        verdict = graded.verdict
        self.journal.append(
            arm=variant.key,
            split=work.split,
            score=None if verdict is None else asdict(verdict.official),
            lenient=asdict(verdict.lenient) if verdict is not None and verdict.differ else None,
            groups=dict(work.entry.groups),
            cluster=work.entry.cluster,
            judge=graded.note,
            unscored=unscored,
            row_digest=work.digest,
            trajectory=trajectory.to_json(),
        )
        self.choices.oracle.pop(task.row_id, None)

    async def _ask_oracle(self, task: Task) -> None:
        assert self.choices.matrix is not None
        chosen = await right_pairs(
            [task],
            self.pool,
            self.choices.matrix,
            judge=self.judge,
            concurrency=1,
            deadline_s=self.config.deadlines.call_s,
        )
        self.choices.oracle.update(chosen)
