"""`maestro train analyse RUN...`: how behaviour emerged, as the paper's figures (E.4, G.7), over one run or several.

maestro train analyse runs/embedded
maestro train analyse runs/full runs/no_format runs/no_answer --out runs/ablation
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

_SHOWN = (
    ("reward", "+.3f"), ("accuracy", ".3f"), ("entropy", ".3f"), ("calls", ".2f"), ("several_calls", ".1%"),
    ("malformed", ".1%"), ("copied", ".0%"),
)  # fmt: skip


def analyse(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of trainings, finished or not.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Where to write; without it, the first run's folder.")
    ] = None,
    smooth: Annotated[int, typer.Option("--smooth", min=1, help="Steps that the thick line is the mean of.")] = 9,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Write emergence.png (reward, entropy, calls an episode, malformed share over steps) and emergence.csv."""
    from train.analysis.emergence import draw_emergence, read_runs, summary, write_table

    found = read_runs(runs)
    folder = found[0].folder if out is None else out
    picture, table = folder / "emergence.png", folder / "emergence.csv"
    draw_emergence(found, picture, width=smooth)
    write_table(found, table)
    summaries = [summary(run) for run in found]
    if as_json:
        typer.echo(json.dumps({"figure": str(picture), "table": str(table), "runs": summaries}))
        return
    console = Console()
    console.print(_told(summaries))
    console.print(f"figure   {picture}\ntable    {table}", highlight=False, soft_wrap=True)


def _told(summaries: list[dict[str, Any]]) -> Table:
    table = Table("run", "steps", "", box=None, padding=(0, 2, 0, 0))
    for name, _ in _SHOWN:
        table.add_column(name.replace("_", " "), justify="right")
    for one in summaries:
        for place, window in enumerate(("first 10", "last 10")):
            cells = (_cell(one[name][place], form) for name, form in _SHOWN)
            table.add_row(*((one["run"], str(one["steps"])) if place == 0 else ("", "")), window, *cells)
    return table


def _cell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
