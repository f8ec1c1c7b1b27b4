"""`maestro experts`: serve the registry's models, see how they do, measure what the experts can do.

    maestro experts serve --dry-run --gpus 0,1,2,3 --gpu-memory 80
    maestro experts status
    maestro experts matrix --rows 120 --out runs/matrix --json

The matrix gives every expert under every skill the same rows of the embedded world's validation split. Faults
are raised as `UserFault`; the application prints them.
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
from rich.text import Text

from maestro.cli.experts_serving import serve, status
from maestro.cli.files import tell_files

if TYPE_CHECKING:
    from rich.progress import Progress

    from eval.matrix import Matrix
    from orchestrator.task import Task
    from registry.registry import Registry

app = typer.Typer(name="experts", help="Serve and measure the experts.", no_args_is_help=True)
app.command()(serve)
app.command()(status)


@app.callback()
def experts() -> None:
    """Serve and measure the experts."""


@app.command()
def matrix(
    registry: Annotated[
        list[Path] | None,
        typer.Option("--registry", metavar="PATH", help="A YAML file or a folder of them; may be repeated."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows of the validation split.")] = 240,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the rows.")] = 7,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for matrix.json and the heat map matrix.png.")
    ] = Path("runs/matrix"),
    cache: Annotated[
        Path | None, typer.Option("--cache", metavar="DIR", help="Folder of the call cache; none: no cache.")
    ] = None,
    endpoints: Annotated[
        Path | None, typer.Option("--endpoints", metavar="FILE", help="Where served models are: experts serve's file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Accuracy of every expert under every skill on every family, printed and drawn as a heat map."""
    from eval.benchmarks.embedded.world import generate
    from eval.figures import draw_matrix
    from eval.row_sources import task_of
    from maestro.cli.evaluate_cmd import progress_display
    from registry.registry import Registry

    loaded = Registry.load(*registry or ())
    tasks = [task_of(row) for row in generate("validation", rows, seed)]
    with progress_display(Console(stderr=True, quiet=as_json)) as progress:
        measured = asyncio.run(_measure(loaded, tasks, cache, endpoints, progress))
    record = {"rows": rows, "seed": seed, "registry": loaded.digest, **measured.to_json()}
    figure = draw_matrix(measured, out / "matrix.png")
    path = out / "matrix.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({**record, "files": {"matrix": str(path), "heat_map": str(figure)}}))
        return
    console = Console()
    console.print(_cells(measured))
    console.print(_best(record["families"]))
    single = record["best_single_pair"]
    console.print(
        f"best single pair {single['pair']}: {_number(single['accuracy'])}; a wrong half costs 0.3 or more "
        f"in {record['families_where_joint_choice_matters']} of {len(measured.families)} families",
        highlight=False,
    )
    if measured.errors:
        console.print(f"[yellow]{measured.errors} calls failed and are left out")
    tell_files(console, heat_map=figure, numbers=path)


async def _measure(
    registry: Registry, tasks: list[Task], cache: Path | None, endpoints: Path | None, progress: Progress
) -> Matrix:
    from eval.matrix import registry_pairs
    from eval.measure_pairs import measure
    from experts.pool import ExpertPool

    pairs = registry_pairs(registry)
    line = progress.add_task("matrix", total=len(tasks) * len(pairs))
    async with ExpertPool(registry, cache_dir=cache, endpoints=endpoints) as pool:
        return await measure(tasks, pool, pairs, on_done=lambda: progress.advance(line))


def _cells(measured: Matrix) -> Table:
    """One line for each skill under its expert; families are numbered so that 80 columns are enough."""
    table = Table(title="accuracy of every pair", box=None, padding=(0, 0, 0, 1))
    table.add_column("", no_wrap=True)
    for number, _ in enumerate(measured.families, start=1):
        table.add_column(str(number), justify="right")
    table.add_column("all", justify="right")
    best = {family: measured.best(family)[0] for family in measured.families}
    previous = ""
    for pair in measured.pairs:
        if pair[0] != previous:
            table.add_row(Text(pair[0], style="bold"))
        previous = pair[0]
        cells = [
            Text(_short(measured.accuracy(pair, family)), style="bold green" if best[family] == pair else "")
            for family in measured.families
        ]
        table.add_row(f" {pair[1]}", *cells, _short(measured.overall(pair)))
    names = enumerate(measured.families, start=1)
    table.caption = ", ".join(f"{number} {family}" for number, family in names)
    return table


def _best(families: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(
        title="best pair of each family, and what a wrong half costs at least", box=None, padding=(0, 0, 0, 1)
    )
    table.add_column("family", no_wrap=True)
    table.add_column("best pair", overflow="fold")
    for name in ("acc.", "skill", "expert"):
        table.add_column(name, justify="right")
    for family, entry in families.items():
        table.add_row(
            family,
            entry["best_pair"],
            _number(entry["accuracy"]),
            _loss(entry["wrong_skill_drop"]),
            _loss(entry["wrong_expert_drop"]),
        )
    return table


def _short(value: float | None) -> str:
    """Two digits without the leading zero; a dot for nothing measured."""
    if value is None:
        return "."
    return "1.0" if value >= 0.995 else f"{value:.2f}"[1:] if value >= 0.005 else "0"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _loss(value: float | None) -> str:
    return "-" if value is None else f"{-value:+.2f}"
