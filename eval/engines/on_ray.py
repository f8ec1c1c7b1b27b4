"""An evaluation on a Ray cluster: its shards run at once on several nodes, and become one run.

The one idea: nothing here knows how to evaluate. Each shard is the ordinary, resumable evaluation in its own folder,
and the merge is the ordinary one, so that the outcome is exactly that of the run on one machine, and the same command
goes on after any end.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eval.config import EvalConfig
from eval.engines.plan import make_plan
from eval.engines.progress import Show
from eval.engines.ray_cluster import connected
from eval.engines.ray_crew import RayCrew
from eval.engines.shared_folder import SharedFolder
from eval.engines.supervisor import Supervisor, Tell
from eval.engines.worker import Job
from eval.merge import merge
from eval.merge_target import check_target
from eval.phases import StartPhase, silent
from eval.run import Evaluation
from registry.registry import Registry


def evaluate_on_ray(
    config: EvalConfig,
    registry: Sequence[Path],
    run: Path,
    *,
    shards: int | None = None,
    address: str | None = None,
    limit: int | None = None,
    retry_errors: bool = False,
    show: Show = lambda name, done, steps: None,
    tell: Tell = lambda text: None,
    warn: Tell = lambda text: None,
    start_phase: StartPhase = silent,
) -> Evaluation:
    """Run what is missing of each shard, then merge them into ``run``.

    ``run`` must lie on a file system that every node sees under the same path, and the program must be installed on
    every node. Shards lie beside it: ``run-shard-1-of-4``.

    Args:
        registry: files and folders; none: the embedded registry.
        shards: how many; ``None``: as the run was begun, else one for each node.
        address: of the cluster; see `eval.engines.ray_cluster.connected`.
        show: is told the progress of all shards together.
        tell: is told where shards run, and what became of dead ones.
        warn: as of `eval.run.evaluate`; what several shards warn of is told once.

    Raises:
        UserFault: a shard could not be finished (with its reason; the others are), a node does not see the folder,
            ``run`` holds what was not merged from shards, the cluster cannot be reached, ...
    """
    run = run.absolute()
    digest = Registry.load(*registry).digest
    check_target(run, anew=True)
    make_plan(run, shards, nodes=1)  # what cannot work is refused before a cluster is looked for
    with connected(address) as nodes:
        plan = make_plan(run, shards, max(1, nodes))
        shared = SharedFolder(run.parent)
        try:
            for folder in plan.folders:
                folder.mkdir(exist_ok=True)
            job = Job(config, tuple(str(path) for path in registry), digest, Path.cwd(), shared, limit, retry_errors)
            crew = RayCrew(plan, job)
            finished = Supervisor(plan.shards, crew, show=show, tell=tell, warn=warn).run()
        finally:
            shared.remove()
    outputs = merge(plan.folders, run, anew=True, start_phase=start_phase)
    ran = sum(one.ran for one in finished.values())
    repaired = sum(one.repaired_bytes for one in finished.values())
    return Evaluation(run, outputs.results, outputs, ran, repaired)
