"""An evaluation from rows to report, resumable at every point.

The one idea: the journal is the state. What it holds is done; everything else is run, written as it
finishes, and the numbers are made from the journal alone. Running a finished evaluation again only rewrites
its results and report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eval.arms import Choices, build_policy, require_checkpoint
from eval.config import VALIDATION, EvalConfig
from eval.identity import folder_digest, hold
from eval.journal import Journal
from eval.judge import judge
from eval.matrix import Matrix, measure, registry_pairs, right_pairs
from eval.output import Outputs, write_outputs
from eval.phases import Clock, StartPhase, silent
from eval.redraw import load_matrix, remember, save_matrix
from eval.rows import Rows, load_splits
from eval.shard import Shard
from eval.variants import Variant, budget_of, samples_of, variants
from eval.versions import versions
from experts.pool import ExpertPool
from orchestrator.observation import check_room
from orchestrator.policy import Policy
from orchestrator.runner import run_episode
from orchestrator.task import Task
from registry.registry import Registry


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation."""

    folder: Path
    results: Mapping[str, Any]
    outputs: Outputs
    ran: int
    """Trajectories run now; the others were in the journal."""
    repaired_bytes: int
    """Length of a half-written last line that was cut from the journal."""


async def evaluate(
    config: EvalConfig,
    registry: Registry,
    folder: Path,
    *,
    limit: int | None = None,
    retry_errors: bool = False,
    shard: Shard | None = None,
    start_phase: StartPhase = silent,
) -> Evaluation:
    """Run what is missing and write ``results.json``, ``report.html``, ``matrix.json`` and figures into
    ``folder``.

    Args:
        limit: only the first rows of each split; more can be added later in the same folder.
        retry_errors: run trajectories again that the infrastructure ended.
        shard: only this part of the rows; ``eval.merge`` puts the parts together.

    Raises:
        UserFault: a checkpoint is missing, the folder was made with other settings, the disk is full, ...
    """
    for name in config.policies:
        require_checkpoint(config, name)
    made_with = _identity(config, registry, shard)
    hold(folder, made_with)
    made_of = {**versions(), **_digests(made_with)}
    clock = Clock(folder)
    with Journal(folder / "journal.jsonl") as journal:
        remember(folder, config, limit, made_of, shard)
        with clock.phase("rows"):
            splits = load_splits(config, limit, start_phase, shard)
        async with ExpertPool(
            registry,
            cache_dir=config.cache,
            default_deadline_s=config.deadlines.call_s,
            endpoints=config.endpoints,
        ) as pool:
            session = _Session(config, registry, folder, pool, journal, splits, retry_errors, start_phase, clock)
            ran = await session.run()
        with clock.phase("report"):
            outputs = write_outputs(
                config,
                folder,
                journal,
                splits,
                session.choices.matrix,
                seconds=clock.seconds,
                versions=made_of,
            )
        repaired = journal.repair.dropped_bytes if journal.repair else 0
    return Evaluation(folder, outputs.results, outputs, ran, repaired)


@dataclass
class _Session:
    """What the phases of one invocation share."""

    config: EvalConfig
    registry: Registry
    folder: Path
    pool: ExpertPool
    journal: Journal
    splits: Sequence[Rows]
    retry_errors: bool
    start_phase: StartPhase
    clock: Clock
    choices: Choices = field(default_factory=Choices)

    async def run(self) -> int:
        config = self.config
        if config.needs_matrix:
            with self.clock.phase("matrix"):
                self.choices = Choices(await self._matrix())
        ran = 0
        for variant in variants(config):
            work = [(rows.split, task, sample) for rows, task, sample in self._pending(variant)]
            if not work:
                continue
            if config.arms[variant.arm].kind == "oracle":
                with self.clock.phase("oracle"):
                    await self._ask_oracle([task for _, task, _ in work])
            with self.clock.phase(f"arm {variant.key}"):
                await self._run_arm(variant, work)
            ran += len(work)
        self.journal.sync()
        return ran

    def _pending(self, variant: Variant) -> Iterator[tuple[Rows, Task, int]]:
        for rows in self._tests():
            for task in rows.tasks:
                for sample in range(samples_of(self.config, variant)):
                    known = self.journal.facts.get((variant.key, task.row_id, sample))
                    if known is None or (self.retry_errors and not known.valid):
                        yield rows, task, sample

    def _tests(self) -> list[Rows]:
        return [rows for rows in self.splits if rows.split != VALIDATION]

    async def _matrix(self) -> Matrix:
        """The matrix on the validation rows; measured once for a folder and number of rows."""
        tasks = next(rows.tasks for rows in self.splits if rows.split == VALIDATION)
        saved = load_matrix(self.folder, len(tasks))
        if saved is not None and not (self.retry_errors and saved.errors):
            return saved
        pairs = registry_pairs(self.registry)
        advance = self.start_phase("matrix", len(tasks) * len(pairs))
        matrix = await measure(
            tasks,
            self.pool,
            pairs,
            concurrency=self.config.expert_concurrency,
            deadline_s=self.config.deadlines.call_s,
            on_done=advance,
        )
        save_matrix(self.folder, len(tasks), matrix)
        return matrix

    async def _ask_oracle(self, tasks: Sequence[Task]) -> None:
        assert self.choices.matrix is not None
        advance = self.start_phase("oracle's choice", len(tasks))
        pairs = await right_pairs(
            tasks,
            self.pool,
            self.choices.matrix,
            concurrency=self.config.expert_concurrency,
            deadline_s=self.config.deadlines.call_s,
            on_done=advance,
        )
        self.choices = Choices(self.choices.matrix, pairs)

    async def _run_arm(self, variant: Variant, work: Sequence[tuple[str, Task, int]]) -> None:
        advance = self.start_phase(variant.key, len(work))
        budget = budget_of(self.config, variant)
        policy = build_policy(self.config, self.registry, variant, self.choices)
        queue = iter(work)

        async def worker() -> None:
            for split, task, sample in queue:
                await self._run_one(variant, policy, split, task, sample)
                advance()

        workers: list[asyncio.Task[None]] = []
        try:
            check_room(budget.max_observation_tokens, getattr(policy, "tokenizer", None))
            workers += [asyncio.create_task(worker()) for _ in range(min(self._width(variant), len(work)))]
            await asyncio.gather(*workers)
        finally:
            for one in workers:
                one.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await policy.aclose()

    def _width(self, variant: Variant) -> int:
        """Episodes in flight."""
        rule = self.config.arms[variant.arm].policy is None
        return self.config.expert_concurrency if rule else self.config.concurrency

    async def _run_one(self, variant: Variant, policy: Policy, split: str, task: Task, sample: int) -> None:
        deadlines = self.config.deadlines
        trajectory = await run_episode(
            task,
            policy,
            self.pool,
            budget=budget_of(self.config, variant),
            seed=self.config.seed,
            sample=sample,
            episode_deadline_s=deadlines.episode_s,
            turn_deadline_s=min(deadlines.call_s, deadlines.episode_s),
        )
        score = judge(task, trajectory.answer) if trajectory.valid else None
        record = None if score is None else asdict(score)
        self.journal.append(arm=variant.key, split=split, score=record, trajectory=trajectory.to_json())


def _identity(config: EvalConfig, registry: Registry, shard: Shard | None) -> dict[str, Any]:
    checkpoints = {name: config.checkpoint(name) for name in config.policies}
    return {
        **({} if shard is None else {"shard": str(shard)}),
        "settings": config.identity(),
        "registry": registry.digest,
        "checkpoints": {name: folder_digest(path) for name, path in checkpoints.items() if path is not None},
    }


def _digests(made_with: Mapping[str, Any]) -> dict[str, str]:
    """Contents by digest, shortened for reading."""
    found = {"registry": str(made_with["registry"])[:12]}
    return found | {f"policy {name}": digest[:12] for name, digest in made_with["checkpoints"].items()}
