"""`maestro evaluate`: run an evaluation, resume it, and write its results and report.

    maestro evaluate configs/eval/embedded.yaml
    maestro evaluate configs/eval/embedded.yaml training=runs/demo --run runs/demo rows.test=120
    maestro evaluate configs/eval/embedded.yaml --limit 24 --json
    maestro evaluate configs/eval/embedded.yaml --shard 1/4      # on each of four machines, then `evaluate merge`
    maestro evaluate report runs/demo

Stopped at any point, the same command goes on where it was. Faults are raised as `UserFault`; the application
prints them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from maestro.cli.evaluate_runs import compare, merge, power, replay
from maestro.cli.progress import phases, progress_display

if TYPE_CHECKING:
    from eval.run import Evaluation

__all__ = ["compare", "evaluate", "merge", "phases", "power", "progress_display", "replay", "report", "results_table"]
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
    run: Annotated[Path | None, typer.Option("--run", metavar="DIR", help="Folder of the results.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="First N rows of each split.")] = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Measure policies and baselines on a benchmark; accuracy, tokens, latency, report.html. Resumable."""
    from eval.config import load_eval_config
    from eval.run import evaluate as run_evaluation
    from eval.shard import parse_shard
    from registry.registry import Registry

    asked = [*(overrides or ()), *([] if seed is None else [f"seed={seed}"])]
    settings = load_eval_config(config, asked)
    loaded = Registry.load(*registry or ())
    part = None if shard is None else parse_shard(shard)
    folder = run or (settings.run if part is None else settings.run.with_name(settings.run.name + part.folder_suffix))
    console = Console(stderr=True, quiet=as_json)
    with progress_display(console) as progress:
        done = asyncio.run(
            run_evaluation(
                settings,
                loaded,
                folder,
                limit=limit,
                retry_errors=retry_errors,
                shard=part,
                start_phase=phases(progress),
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


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an evaluation.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Make results.json, the figures and report.html of an evaluation anew from its journal; runs nothing."""
    from eval.redraw import redraw

    with progress_display(Console(stderr=True, quiet=as_json)) as progress:
        made = redraw(run, start_phase=phases(progress))
    if as_json:
        typer.echo(json.dumps({"results": str(made.results_path), "report": str(made.report_path)}))
        return
    console = Console()
    console.print(results_table(made.results))
    console.print(f"report   {made.report_path}", highlight=False)


def _tell(done: Evaluation) -> None:
    console, results = Console(), done.results
    if done.repaired_bytes:
        console.print(f"The journal's end was broken ({done.repaired_bytes} bytes, cut off); what was lost ran again.")
    console.print(results_table(results))
    gain = results.get("gain")
    if gain:
        low, high = gain["ci95"]
        interval = f"95 %: {100 * low:.1f} to {100 * high:.1f}"
        console.print(f"after - before: {100 * gain['difference']:+.1f} points ({interval})")
    if results["errors"]:
        share = f"{results['errors']} of {results['trajectories']} trajectories"
        console.print(f"[yellow]{share} failed for want of infrastructure: neither right nor wrong.")
        console.print("[yellow]--retry-errors repeats just those.")
    console.print(f"results  {done.outputs.results_path}", highlight=False)
    console.print(f"report   {done.outputs.report_path}", highlight=False)


def results_table(results: Mapping[str, Any]) -> Table:
    """Every arm on the test split, in a terminal of 80 columns."""
    title = f"{results['benchmark']}: {results['rows']['test']} test questions, seed {results['seed']}"
    table = Table(title=title, box=None, padding=(0, 0, 0, 1))
    table.add_column("arm", no_wrap=True)
    for name in ("acc.", "95 %", "greedy", "unseen", "n", "err.", "malf.", "calls", "p50 s"):
        table.add_column(name, justify="right", no_wrap=True)
    unseen = results.get("unseen") or {}
    beside = {name: unseen.get(name) for name in ("before", "after")} | dict(unseen.get("baselines") or {})
    named = [(name, results[name]) for name in ("before", "after") if results.get(name)]
    for name, entry in [*named, *results["baselines"].items()]:
        low, high = entry["ci95"] or (None, None)
        table.add_row(
            name,
            _number(entry["accuracy"], 3),
            "" if low is None else f"{low:.2f}-{high:.2f}",
            _number(entry["greedy"], 3) if "greedy" in entry else "",
            _number((beside.get(name) or {}).get("accuracy"), 3),
            str(entry["n"]),
            str(entry["errors"]),
            _number(entry["malformed_rate"], 3),
            _number(entry["calls"], 2),
            _number(entry["latency_s"]["p50"], 2),
            style="bold" if name == "after" else None,
        )
    return table


def _number(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"
