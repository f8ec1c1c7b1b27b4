"""`maestro evaluate`: run an evaluation, resume it, and write its results and report.

    maestro evaluate configs/eval/embedded.yaml
    maestro evaluate configs/eval/embedded.yaml training=runs/demo --run runs/demo rows.test=120
    maestro evaluate configs/eval/embedded.yaml --limit 24 --json
    maestro evaluate configs/eval/benchmark.yaml benchmark=slake --data-root ~/data
    maestro evaluate configs/eval/embedded.yaml --shard 1/4      # on each of four machines, then `evaluate merge`
    maestro evaluate configs/eval/embedded.yaml --engine ray     # or all shards by one command, on a Ray cluster
    maestro evaluate report runs/demo

Stopped at any point, the same command goes on where it was. Faults are raised as `UserFault`; the application
prints them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from maestro.cli.evaluate_engine import Engine, check_engine, run_on_ray
from maestro.cli.evaluate_report import report
from maestro.cli.evaluate_runs import compare, merge, power, replay
from maestro.cli.evaluate_study import DataRoot, data_override, study
from maestro.cli.evaluate_tables import tables
from maestro.cli.files import tell_files
from maestro.cli.plain_text import plain
from maestro.cli.progress import phases, progress_display
from maestro.cli.results_table import results_table, tell_results

if TYPE_CHECKING:
    from eval.run import Evaluation

__all__ = [
    "compare",
    "evaluate",
    "merge",
    "phases",
    "power",
    "progress_display",
    "replay",
    "report",
    "results_table",
    "study",
    "tables",
]
TOO_MANY_ERRORS = 1


def evaluate(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="For example configs/eval/embedded.yaml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Laid over the file: rows.test=60"),
    ] = None,
    registry: Annotated[
        list[Path] | None,
        typer.Option("--registry", metavar="PATH", help="A YAML file or a folder of them; may be repeated."),
    ] = None,
    data_root: DataRoot = None,
    run: Annotated[Path | None, typer.Option("--run", metavar="DIR", help="Folder of the results.")] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="First N rows of each split, the one on which pairs are measured too."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Instead of the file's seed.")] = None,
    retry_errors: Annotated[
        bool,
        typer.Option("--retry-errors", help="Repeat what an infrastructure failure ended."),
    ] = False,
    fail_on_error: Annotated[
        float | None,
        typer.Option("--fail-on-error", min=0, max=1, help="Exit code 1 above this share of such failures."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option("--shard", metavar="I/N", help="Only every N-th row, from the I-th; see `merge`.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="ray: the shards on a cluster, merged; --run on a shared file system.")
    ] = Engine.HERE,
    shards: Annotated[
        int | None, typer.Option("--shards", metavar="N", min=1, help="With ray: how many; default: one a node.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option("--ray-address", metavar="ADDRESS", help="Default: $RAY_ADDRESS, else this machine.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Measure policies and baselines on a benchmark; accuracy, tokens, latency, report.html. Resumable."""
    from eval.config import load_eval_config
    from eval.run import evaluate as run_evaluation
    from eval.shard import parse_shard
    from registry.registry import Registry

    check_engine(engine, shard, shards, ray_address)
    asked = [*(overrides or ()), *data_override(data_root), *([] if seed is None else [f"seed={seed}"])]
    settings = load_eval_config(config, asked)
    loaded = Registry.load(*registry or ())
    part = None if shard is None else parse_shard(shard)
    folder = run or (settings.run if part is None else settings.run.with_name(settings.run.name + part.folder_suffix))
    console = Console(stderr=True, quiet=as_json)
    with progress_display(console) as progress:
        if engine is Engine.RAY:
            done = run_on_ray(
                settings, registry or (), folder, progress,
                shards=shards, address=ray_address, limit=limit, retry_errors=retry_errors,
            )  # fmt: skip
        else:
            done = asyncio.run(
                run_evaluation(
                    settings,
                    loaded,
                    folder,
                    limit=limit,
                    retry_errors=retry_errors,
                    shard=part,
                    start_phase=phases(progress),
                    warn=lambda line: console.print(plain(line), style="yellow", markup=False, highlight=False),
                )
            )
    if as_json:
        paths = {"results": str(done.outputs.results_path), "report": str(done.outputs.report_path)}
        typer.echo(json.dumps({**done.results, "run": str(folder), "files": paths}, ensure_ascii=False))
    else:
        _tell(done)
    errors, total = done.results["errors"], done.results["trajectories"]
    if fail_on_error is not None and errors > fail_on_error * total:
        console.print(f"[red]{errors} of {total} trajectories ended in an infrastructure failure")
        raise typer.Exit(TOO_MANY_ERRORS)


def _tell(done: Evaluation) -> None:
    console, results = Console(), done.results
    if done.repaired_bytes:
        console.print(f"The journal's end was broken ({done.repaired_bytes} bytes, cut off); what was lost ran again.")
    tell_results(console, results)
    gain = results.get("gain")
    if gain:
        low, high = gain["ci95"]
        interval = f"95 %: {100 * low:.1f} to {100 * high:.1f}"
        console.print(f"after - before: {100 * gain['difference']:+.1f} points ({interval})")
    waiting = (results["scorer"].get("judge") or {}).get("ungraded", 0)  # told by tell_results
    if results["errors"] > waiting:
        share = f"{results['errors'] - waiting} of {results['trajectories']} trajectories"
        console.print(
            f"[yellow]{share} failed for want of infrastructure, or could not be scored: neither right nor wrong."
        )
        console.print("[yellow]--retry-errors repeats just those.")
    tell_files(console, results=done.outputs.results_path, report=done.outputs.report_path)
