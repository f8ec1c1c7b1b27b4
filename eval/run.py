"""An evaluation from rows to report, resumable at every point.

The one idea: the journal is the state. What it holds is done; everything else is run, written as it
finishes, and the numbers are made from the journal alone. Running a finished evaluation again only rewrites
its results and report.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.arms import require_checkpoint
from eval.benchmarks.spec import Benchmark
from eval.config import EvalConfig
from eval.identity import folder_digest, hold
from eval.journal import Journal
from eval.judge import Judge
from eval.judge_prompt import VERSION as JUDGE_PROMPT
from eval.model_judge import ModelJudge
from eval.output import Outputs, write_outputs
from eval.parts import parts_of
from eval.phases import Clock, StartPhase, silent
from eval.pools import Pools
from eval.redraw import FILE as RUN_FILE
from eval.redraw import recall, remember
from eval.rules_digest import rules_digest, version_changes
from eval.session import Session
from eval.shard import Shard
from eval.splits import load_splits
from eval.versions import served_versions, versions
from experts.pool import ExpertPool
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
    warn: Callable[[str], None] = lambda line: None,
) -> Evaluation:
    """Run what is missing and write ``results.json``, ``report.html``, ``matrix.json`` and figures into
    ``folder``.

    Args:
        limit: only the first rows of each split; more can be added later in the same folder.
        retry_errors: run trajectories again that the infrastructure ended.
        shard: only this part of the rows; ``eval.merge`` puts the parts together.
        warn: told in one line where the folder was begun with other versions of the program, its rules or a package.

    Raises:
        UserFault: an unknown benchmark, rows that cannot be had or used, a missing checkpoint, a folder that was made
            with other settings, a full disk, ... What ran until then is in the journal.
    """
    benchmark = config.definition()
    for name in config.policies:
        require_checkpoint(config, name)
    pools = Pools(config, registry)
    made_with = _identity(config, pools, benchmark, shard)
    hold(folder, made_with)
    servers = await served_versions(folder, pools.everything, config.endpoints, config.policies)
    made_of = {**versions(), "rules": rules_digest(), **servers, **_digests(made_with)}
    clock = Clock(folder)
    with Journal(folder / "journal.jsonl") as journal:
        begun = bool(journal.facts) and (folder / RUN_FILE).is_file()
        changed = version_changes(recall(folder).versions, made_of) if begun else None
        if changed is not None:
            warn(changed)
        parts = parts_of(pools.registry)
        remember(folder, config, limit, made_of, shard, parts)
        with clock.phase("rows"):
            splits = load_splits(config, limit, start_phase, shard)
        async with (
            ExpertPool(
                pools.everything,
                cache_dir=config.cache,
                default_deadline_s=config.deadlines.call_s,
                endpoints=config.endpoints,
            ) as pool,
            _judging(config, benchmark) as judge,
        ):
            session = Session(config, pools, folder, pool, journal, splits, judge, retry_errors, start_phase, clock)
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
                parts=parts,
            )
        repaired = journal.repair.dropped_bytes if journal.repair else 0
    return Evaluation(folder, outputs.results, outputs, ran, repaired)


@asynccontextmanager
async def _judging(config: EvalConfig, benchmark: Benchmark | None) -> AsyncIterator[Judge]:
    model = None if config.judge is None else ModelJudge(config.judge, cache=config.cache)
    try:
        yield Judge(benchmark, model)
    finally:
        if model is not None:
            await model.aclose()


def _identity(config: EvalConfig, pools: Pools, benchmark: Benchmark | None, shard: Shard | None) -> dict[str, Any]:
    checkpoints = {name: config.checkpoint(name) for name in config.policies}
    read = benchmark is not None and benchmark.generator is None
    asks = benchmark is None or benchmark.scorer.judge or config.parquet.test is not None
    judge = config.judge if asks else None
    return {
        **({} if shard is None else {"shard": str(shard)}),
        "settings": config.identity(),
        "registry": pools.registry.digest,
        **({"spare": pools.spare.digest} if config.spare else {}),
        **({} if judge is None else {"judge": {"model": judge.model, "prompt": JUDGE_PROMPT}}),
        **({"benchmark": _definition_digest(benchmark)} if read and benchmark is not None else {}),
        "checkpoints": {name: folder_digest(path) for name, path in checkpoints.items() if path is not None},
    }


def _definition_digest(benchmark: Benchmark) -> str:
    """Of what decides rows and scores; the words about them do not, nor does what only intervals read. Whether a judge
    model is asked stands beside it."""
    words: Any = {
        "title": True,
        "about": True,
        "licence": True,
        "question_key": True,
        "scorer": {"source", "differs", "judge"},
    }
    return hashlib.sha256(benchmark.model_dump_json(exclude=words).encode()).hexdigest()


def _digests(made_with: Mapping[str, Any]) -> dict[str, str]:
    """Contents by digest, shortened for reading."""
    found = {"registry": str(made_with["registry"])[:12]}
    found |= {"benchmark": made_with["benchmark"][:12]} if "benchmark" in made_with else {}
    return found | {f"policy {name}": digest[:12] for name, digest in made_with["checkpoints"].items()}
