"""`maestro evaluate study`: several evaluations in one file, run into one folder, with one table.

maestro evaluate study configs/eval/study_embedded.yaml --dry-run
maestro evaluate study configs/eval/study_embedded.yaml training=runs/demo
maestro evaluate study configs/eval/study_embedded.yaml --only extended --limit 24
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from maestro.cli.files import tell_files
from maestro.cli.plain_text import plain
from maestro.cli.progress import phases, progress_display

if TYPE_CHECKING:
    from eval.study_run import Planned, Ran


DataRoot = Annotated[
    Path | None,
    typer.Option("--data-root", metavar="PATH", help="A local copy, as data.root=PATH: folder, the one above, file."),
]


def data_override(data_root: Path | None) -> list[str]:
    """The option as the setting that it is short for."""
    return [] if data_root is None else [f"data.root={json.dumps(str(data_root))}"]


def study(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="For example configs/eval/study_embedded.yaml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Laid over every member; folder=DIR moves the study."),
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="MEMBER", help="May be repeated.")] = None,
    data_root: DataRoot = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all of it and say what would run.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="First N rows of each split.")] = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Repeat what an infrastructure failure ended.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Run baselines, ablations and registries as one study: a table over all of them. Resumable, member by member."""
    from eval.study import load_study
    from eval.study_run import plan, run_study
    from registry.errors import UserFault

    asked = load_study(config, [*(overrides or ()), *data_override(data_root)], only or ())
    if dry_run:
        planned = list(plan(asked, limit))
        if as_json:
            typer.echo(json.dumps({one.member.name: _as_json(one) for one in planned}))
        else:
            _tell_plan(asked.title, planned)
        return
    console = Console(stderr=True, quiet=as_json)
    with progress_display(console) as progress:
        ran = run_study(
            asked,
            limit=limit,
            retry_errors=retry_errors,
            start_phase=phases(progress),
            warn=lambda line: console.print(line, style="yellow", markup=False, highlight=False),
            on_member=lambda member: console.rule(f"{member.name}: {member.about}" if member.about else member.name),
        )
    if as_json:
        lines = [asdict(line) for line in ran.lines]
        record = {"lines": lines, "left_out": ran.left_out, "failed": ran.failed, "summary": str(ran.summary)}
        typer.echo(json.dumps(record, ensure_ascii=False))
    else:
        _tell(asked.title, ran)
    if ran.failed:
        told = "\n".join(f"  {name}: {why}" for name, why in ran.failed.items())
        fix = "mend it and give the same command again: what ran is kept"
        raise UserFault(f"{len(ran.failed)} of {len(asked.members)} members did not run:\n{told}", fix=fix)


def _as_json(one: Planned) -> dict[str, object]:
    return {
        "folder": str(one.member.folder),
        "benchmark": one.member.config.benchmark,
        "experts": one.pairs[0],
        "skills": one.pairs[1],
        "episodes": one.episodes,
        "validation_calls": one.validation_calls,
        "written": one.written,
        "missing": one.member.missing,
        "optional": one.member.optional,
    }


def _tell_plan(title: str, planned: list[Planned]) -> None:
    console = Console()
    table = Table(title=title, box=None, padding=(0, 1, 0, 0))
    for name, right in (("member", False), ("arm", False), ("episodes", True), ("note", False)):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for one in planned:
        member, config = one.member, one.member.config
        note = f"{config.benchmark}, {one.pairs[0]} experts x {one.pairs[1]} skills, {one.written} written"
        if one.validation_calls:
            note += f", {one.validation_calls} calls on validation rows"
        table.add_row(Text(member.name, style="bold"), "", _count(one.total), note)
        for key, count in one.episodes.items():
            table.add_row("", key, _count(count), config.arms[key.split("/")[0]].kind)
        if member.missing:
            what = "left out" if member.optional else "would fail"
            table.add_row("", "", "", Text(plain(f"{what}: {', '.join(member.missing)}"), style="yellow"))
    console.print(table)
    totals = [one.total for one in planned]
    whole = None if None in totals else sum(total or 0 for total in totals)
    console.print(f"{len(planned)} members, {_count(whole)} episodes", highlight=False)


def _tell(title: str, ran: Ran) -> None:
    from eval.study_table import columns

    console = Console()
    titles, cells = columns(ran.lines)
    table = Table(title=title, box=None, padding=(0, 0, 0, 1))
    for number, name in enumerate(titles):
        table.add_column(name, justify="right" if number > 1 else "left", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    console.print(table)
    for name, why in ran.left_out.items():
        console.print(Text(plain(f"left out: {name}: {why}"), style="yellow"))
    if ran.errors:
        console.print(f"[yellow]{ran.errors} trajectories failed for want of infrastructure: neither right nor wrong.")
        console.print("[yellow]--retry-errors repeats just those.")
    if ran.summary is not None:
        tell_files(console, table=ran.summary)


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
