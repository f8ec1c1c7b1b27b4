"""`maestro evaluate report`: the report of an evaluation again, or one page over several.

maestro evaluate report runs/demo
maestro evaluate report runs/chartqa --data-root ~/data
maestro evaluate report runs/chartqa runs/slake runs/vstar --out runs/all.html
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eval.run_folder import check_run
from maestro.cli.files import tell_files
from maestro.cli.progress import phases, progress_display
from registry.errors import UserFault


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folder of an evaluation; or several.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="With several: the page that shows them together.")
    ] = None,
    data_root: Annotated[
        Path | None,
        typer.Option("--data-root", metavar="PATH", help="Where one run's data is now, if it has moved."),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Of the page over several.")] = "Evaluations",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Make results.json, the figures and report.html anew from the journal; of several runs, one page together.

    Where the benchmark's data cannot be read, the report lacks its pictures and says why.
    """
    together = out is not None or len(runs) > 1
    for run in runs:
        if not together or not run.exists():  # the page over several needs no journal, only results.json
            check_run(run)
    if together and data_root is not None:
        raise UserFault(
            "the page over several runs shows no pictures of the data",
            where="--data-root",
            fix="give one run and no --out; or leave --data-root out",
        )
    if together:
        _together(runs, out, title, as_json)
        return
    from eval.redraw import redraw
    from maestro.cli.results_table import tell_results, tell_unread

    with progress_display(Console(stderr=True, quiet=as_json)) as progress:
        made = redraw(runs[0], data_root=data_root, start_phase=phases(progress))
    if as_json:
        missing = {} if made.unread is None else {"without_pictures": str(made.unread)}
        typer.echo(json.dumps({"results": str(made.results_path), "report": str(made.report_path), **missing}))
        return
    console = Console()
    tell_results(console, made.results)
    tell_unread(console, made.unread)
    tell_files(console, report=made.report_path)


def _together(runs: list[Path], out: Path | None, title: str, as_json: bool) -> None:
    from eval.report.runs import write_runs

    if out is None:
        raise UserFault("a page over several runs needs a file", where="--out", fix="--out runs/report.html")
    path = write_runs(runs, out, title=title)
    typer.echo(json.dumps({"report": str(path)}) if as_json else f"report   {path}")
