"""`maestro evaluate --engine ray`: the shards of one evaluation at once, on the nodes of a Ray cluster.

    maestro evaluate configs/eval/embedded.yaml --engine ray                          # a cluster of this machine alone
    maestro evaluate configs/eval/embedded.yaml --engine ray --ray-address auto       # on a node of a running cluster
    maestro evaluate configs/eval/embedded.yaml --engine ray --ray-address auto --shards 8

The run's folder (`--run`) must lie on a file system that every node sees under the same path. Stopped at any point, the
same command goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import Progress, TaskID

from maestro.cli.progress import phases
from registry.errors import UserFault

if TYPE_CHECKING:
    from eval.config import EvalConfig
    from eval.run import Evaluation


class Engine(StrEnum):
    """Where an evaluation runs."""

    HERE = "here"
    RAY = "ray"


def check_engine(engine: Engine, shard: str | None, shards: int | None, address: str | None) -> None:
    """Raises UserFault for options that do not go together."""
    if engine is Engine.RAY and shard is not None:
        raise UserFault(
            "--engine ray runs all shards", where="--shard", fix="leave --shard out, or say how many with --shards"
        )
    if engine is Engine.HERE:
        for name, given in (("--shards", shards), ("--ray-address", address)):
            if given is not None:
                raise UserFault(f"{name} needs an engine", where=name, fix="add --engine ray")


def run_on_ray(
    settings: EvalConfig,
    registry: Sequence[Path],
    folder: Path,
    progress: Progress,
    *,
    shards: int | None,
    address: str | None,
    limit: int | None,
    retry_errors: bool,
) -> Evaluation:
    """Evaluate on a cluster; the progress display shows all shards together and what becomes of each."""
    from eval.engines.on_ray import evaluate_on_ray

    return evaluate_on_ray(
        settings,
        registry,
        folder,
        shards=shards,
        address=address,
        limit=limit,
        retry_errors=retry_errors,
        show=totals(progress),
        tell=lambda text: progress.console.print(text, markup=False, highlight=False),
        warn=lambda text: progress.console.print(text, style="yellow", markup=False, highlight=False),
        start_phase=phases(progress),
    )


def totals(progress: Progress) -> Callable[[str, int, int | None], None]:
    """One line of the display for each phase, set to what is done of it."""
    lines: dict[str, TaskID] = {}

    def show(name: str, done: int, steps: int | None) -> None:
        if name not in lines:
            lines[name] = progress.add_task(name, total=steps)
        progress.update(lines[name], completed=done, total=steps)

    return show
