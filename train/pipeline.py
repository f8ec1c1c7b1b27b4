"""A training run from nothing to a policy: rows, blank policy, demonstrations, cold start, GRPO.

One idea: every phase leaves one thing on disk, complete or not at all, and is passed over when that thing is there; so
the same command starts a run, goes on with a killed one, and does nothing when all is done.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from experts.pool import ExpertPool
from orchestrator.budget import Budget
from orchestrator.policies.keyword_router import KeywordRouter
from orchestrator.runner import run_episodes
from orchestrator.task import Task
from orchestrator.trajectory import Trajectory
from registry.errors import UserFault
from registry.registry import Registry, default_registry_path
from train.checkpoints import complete_steps
from train.cold_start import run_cold_start
from train.config import TrainConfig
from train.demonstrations import Demonstration, Scene, from_trajectories, rehearsals
from train.grpo import run_grpo
from train.identity import alone, pin_config
from train.paths import RunPaths
from train.resume import check_source, take_cold_policy
from train.rows import read_rows
from train.termination import Terminated, Termination
from train.tiny.model import build_tiny_policy
from train.tiny.tokenizer import build_tokenizer
from train.trackers import check_wandb
from train.versions import versions

_REHEARSALS = 12  # a call of the router; fresh ones cost nothing, and what is seen once is not learned by heart
RowWriter = Callable[[str, int, int, Path], None]  # split, rows, seed, file: writes the file of a benchmark's split


class Reporter(Protocol):
    """Who is told how far the run is."""

    def phase(self, name: str, total: int) -> None: ...
    def advance(self, done: int, note: str = "") -> None: ...
    def step(self, record: dict[str, Any], steps: int) -> None: ...
    def warn(self, text: str) -> None: ...


@dataclass
class Summary:
    """What a run did. `seconds` by phase, added up over resumed calls. `registry`: digest of the one it began with."""

    root: str
    steps: int
    seconds: dict[str, float] = field(default_factory=dict)
    parameters: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    registry: str = ""


def train(config: TrainConfig, write_rows: RowWriter, reporter: Reporter, *, stop_on_collapse: bool = False) -> Summary:
    """Carry the run in `config.run` to its end; returns its summary (also in `train.json`).

    Raises UserFault, train.grpo's failures, and Terminated when SIGTERM came.
    """
    if config.watch.wandb:
        check_wandb()
    paths = RunPaths.at(config.run)
    paths.root.mkdir(parents=True, exist_ok=True)
    with alone(paths), Termination() as termination:
        try:
            return _train(config, paths, write_rows, reporter, stop_on_collapse, termination)
        except Terminated as end:
            end.text = f"{end.text}: {_where(config, paths)}"
            raise


def _where(config: TrainConfig, paths: RunPaths) -> str:
    """What the same command will do after the break."""
    steps = complete_steps(paths.checkpoints)
    if config.resume == "never":
        kept = f", resume=auto goes on from the checkpoint of step {steps[-1]}" if steps else ""
        return f"the same command begins GRPO anew{kept}"
    place = f"the checkpoint of step {steps[-1]}" if steps else "what earlier phases have left"
    return f"the same command goes on from {place}"


def _train(
    config: TrainConfig,
    paths: RunPaths,
    write_rows: RowWriter,
    reporter: Reporter,
    stop_on_collapse: bool,
    termination: Termination,
) -> Summary:
    if config.resume != "never":
        check_source(config, paths)
    pin_config(config, paths)
    summary = _read_summary(paths, config)
    if config.resume == "never" or not summary.registry:
        summary.registry = Registry.load(*(config.registry or (default_registry_path(),))).digest
    if not config.data.train_files:
        with _timed(summary, paths, "rows"):
            for split, count, file in (
                ("train", config.data.train_rows, paths.train_rows),
                ("validation", config.data.validation_rows, paths.validation_rows),
            ):
                if not file.exists():
                    reporter.phase(f"drawing {count} {split} rows", 0)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    write_rows(split, count, config.seed, file)
    model = Path(config.policy).resolve() if config.policy else _cold_policy(config, paths, summary, reporter)
    with _timed(summary, paths, "grpo"):
        reporter.phase(f"GRPO, {config.grpo.steps} steps", config.grpo.steps)
        run_grpo(
            config,
            paths,
            model,
            on_step=lambda record: reporter.step(record, config.grpo.steps),
            on_alarm=reporter.warn,
            stop_on_collapse=stop_on_collapse,
            termination=termination,
        )
    summary.versions = versions()
    _write_summary(summary, paths)
    return summary


def _cold_policy(config: TrainConfig, paths: RunPaths, summary: Summary, reporter: Reporter) -> Path:
    """The policy before RL: tiny Qwen3-VL, cold-started on the keyword router."""
    if (paths.cold / "config.json").exists() or take_cold_policy(config, paths):
        return paths.cold
    registry = Registry.load(*(config.registry or (default_registry_path(),)))
    train_file = Path(config.data.train_files[0]) if config.data.train_files else paths.train_rows
    rows = [(task, caption) for task, caption in read_rows(train_file) if task.pictures]
    if not rows:
        raise UserFault(
            "no row has a picture", where=str(train_file), fix="give rows with pictures, or start from a policy"
        )
    scenes = {task.row_id: (task.pictures[0], caption) for task, caption in rows}
    with _timed(summary, paths, "demonstrations"):
        reporter.phase("router rollouts", min(config.cold_start.demonstrations, len(rows)))
        calls = asyncio.run(_demonstrate(config, paths, registry, [task for task, _ in rows], scenes, reporter))
    rehearsed = rehearsals(calls, _REHEARSALS * len(calls), config.seed)
    with _timed(summary, paths, "cold_start"):
        texts = [*_texts(calls), *(task.question for task, _ in rows)]
        tokenizer = build_tokenizer(
            texts, [e.name for e in registry.experts], [s.name for s in registry.skills], config.cold_start.vocabulary
        )
        summary.parameters = build_tiny_policy(paths.blank, tokenizer, config.seed)
        reporter.phase("cold start", config.cold_start.steps)
        run_cold_start(
            paths.blank,
            paths.cold,
            [
                (calls, 1 - config.cold_start.rehearsal_share),
                (rehearsed, config.cold_start.rehearsal_share),
            ],
            config.cold_start,
            seed=config.seed,
            log=paths.cold_log,
            on_step=lambda step, loss: reporter.advance(step, f"loss {loss:.3f}"),
        )
    return paths.cold


def _texts(demonstrations: list[Demonstration]) -> list[str]:
    return ["".join(text for text, _ in d.pieces) for d in demonstrations]


async def _demonstrate(
    config: TrainConfig,
    paths: RunPaths,
    registry: Registry,
    tasks: list[Task],
    scenes: dict[str, Scene],
    reporter: Reporter,
) -> list[Demonstration]:
    """Rollouts of the noisy router on a seeded choice of rows."""
    chosen = random.Random(config.seed).sample(tasks, min(config.cold_start.demonstrations, len(tasks)))
    router = KeywordRouter(registry, temperature=config.cold_start.router_temperature)
    done: list[Trajectory] = []

    def keep(trajectory: Trajectory) -> None:
        done.append(trajectory)
        reporter.advance(len(done))

    async with ExpertPool(registry, cache_dir=paths.cache, endpoints=config.endpoints) as pool:
        await run_episodes(
            chosen,
            router,
            pool,
            budget=Budget(horizon=config.protocol.horizon),
            concurrency=8,
            episode_deadline_s=config.protocol.episode_seconds,
            turn_deadline_s=config.protocol.turn_seconds,
            seed=config.seed,
            on_done=keep,
        )
    done.sort(key=lambda t: t.row_id)  # finishing order depends on the clock, the cold start must not
    return from_trajectories(done, scenes)


@contextmanager
def _timed(summary: Summary, paths: RunPaths, phase: str) -> Iterator[None]:
    started = time.monotonic()
    try:
        yield
    finally:
        summary.seconds[phase] = round(summary.seconds.get(phase, 0.0) + time.monotonic() - started, 1)
        _write_summary(summary, paths)


def _read_summary(paths: RunPaths, config: TrainConfig) -> Summary:
    try:
        raw = json.loads(paths.summary.read_text(encoding="utf-8"))
        return Summary(**{**raw, "steps": config.grpo.steps})
    except (OSError, ValueError, TypeError):
        return Summary(root=str(paths.root), steps=config.grpo.steps)


def _write_summary(summary: Summary, paths: RunPaths) -> None:
    partial = paths.summary.with_suffix(".partial")
    partial.write_text(json.dumps(vars(summary), indent=2), encoding="utf-8")
    partial.replace(paths.summary)
