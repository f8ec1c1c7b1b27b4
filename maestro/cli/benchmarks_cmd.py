"""`maestro benchmarks`: which there are, their rows as they will be asked, and what is wrong with a copy's rows.

    maestro benchmarks list
    maestro benchmarks show chartqa --data-root ~/data --limit 3
    maestro benchmarks check my_benchmark.yaml --data-root my_rows.jsonl

NAME is a benchmark's name or the path of a YAML file (`list` also takes a folder of them). With `--json` exactly
one JSON object goes to standard output.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from maestro.cli.plain_text import plain
from maestro.cli.whole_table import whole_table
from registry.errors import UserFault

if TYPE_CHECKING:
    from eval.benchmarks.check import Findings
    from eval.benchmarks.item import Item
    from eval.benchmarks.spec import Benchmark

_NOTES = 20  # right answers that score 0, shown
_SHOWN_CHARS = 2000

app = typer.Typer(name="benchmarks", help="The benchmarks: list, show, check.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A benchmark's name, or the path of a YAML file.")]
DataRoot = Annotated[
    Path | None, typer.Option("--data-root", help="A local copy: the benchmark's folder, the one above it, or a file.")
]
TextOnly = Annotated[bool, typer.Option("--text-only", help="Read rows without their pictures.")]
Deadline = Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds to wait for the hub.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@app.command(name="list")
def list_(
    folder: Annotated[str | None, typer.Argument(help="A folder or file instead of those that come along.")] = None,
    as_json: AsJson = False,
) -> None:
    """The benchmarks: rows, rules, licence, where the data lies."""
    from eval.benchmarks.catalogue import find_benchmarks, load_all

    found = load_all() if folder is None else find_benchmarks(folder)
    if as_json:
        _print_json({"benchmarks": [one.model_dump(mode="json") for one in found]})
        return
    table = whole_table("Name", "Rows", "Rule", "Licence", "Data")
    for one in found:
        rows = "?" if one.rows is None else f"{one.rows:,}"
        table.add_row(*map(Text, (one.name, rows, one.scorer.official, one.licence, _place(one))))
    Console().print(table)


@app.command()
def show(
    name: Name,
    data_root: DataRoot = None,
    limit: Annotated[int, typer.Option(min=0, help="Rows to show.")] = 3,
    text_only: TextOnly = False,
    deadline: Deadline = 120.0,
    as_json: AsJson = False,
) -> None:
    """What the benchmark is, and its first rows as they will be asked."""
    from eval.benchmarks.catalogue import find_benchmark
    from eval.benchmarks.reader import Reading, read_items
    from eval.benchmarks.tally import Tally

    benchmark, tally = find_benchmark(name), Tally(name)
    reading = Reading(data_root, limit=limit, text_only=text_only, most_faulty=1.0, deadline_s=deadline)
    items = list(read_items(benchmark, reading, tally)) if limit else []
    rows = [_row(item) for item in items]
    if as_json:
        _print_json({"benchmark": benchmark.model_dump(mode="json"), "rows": rows, "read": tally.summary()})
        return
    console = Console()
    console.print(_facts(benchmark))
    for row in rows:
        console.print(_row_text(row))
    if tally.faulty:
        console.print(Text(tally.summary(), style="yellow"))


@app.command()
def check(
    name: Name,
    data_root: DataRoot = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Look at the first rows only.")] = None,
    text_only: TextOnly = False,
    deadline: Deadline = 120.0,
    as_json: AsJson = False,
) -> None:
    """Every row's faults, and whether the right answer scores 1 by the benchmark's own rule. Exit code 2 if any row
    is faulty."""
    from eval.benchmarks.catalogue import find_benchmark
    from eval.benchmarks.check import check_rows
    from eval.benchmarks.reader import Reading

    reading = Reading(data_root, limit=limit, text_only=text_only, deadline_s=deadline)
    findings = check_rows(
        find_benchmark(name),
        reading,
        tell=None if as_json else lambda fault: typer.echo(plain(f"{fault.where}: {fault.what}")),
    )
    if as_json:
        _print_json(findings.record())
    else:
        _tell(findings)
    if not findings.ok:
        raise typer.Exit(UserFault.exit_code)


def _tell(findings: Findings) -> None:
    benchmark, tally = findings.benchmark, findings.tally
    for note in findings.notes[:_NOTES]:
        typer.echo(plain(f"{note['row']}: the right answer {note['answer']!r} scores 0: {note['why']}"))
    if len(findings.notes) > _NOTES:
        typer.echo(f"... and {len(findings.notes) - _NOTES} more")
    typer.echo(plain(f"{benchmark.name}: {tally.summary()}"))
    lenient = f"; by {benchmark.scorer.lenient}: {findings.lenient}" if benchmark.scorer.lenient else ""
    typer.echo(
        f"the right answer scores 1 by {benchmark.scorer.official}: {findings.official} of {tally.kept}{lenient}"
    )
    if benchmark.rows is not None and tally.seen not in (0, benchmark.rows):
        typer.echo(f"note: the whole split has {benchmark.rows} rows")


def _place(benchmark: Benchmark) -> str:
    hub = benchmark.hub
    if hub is not None:
        return f"{hub.id}, {hub.config + ', ' if hub.config else ''}{hub.split}"
    return "drawn" if benchmark.generator is not None else "--data-root"


def _row(item: Item) -> dict[str, Any]:
    from orchestrator.prompt import question_text

    task = item.task()
    gold = (
        task.ground_truth if task.ground_truth is None or isinstance(task.ground_truth, str) else [*task.ground_truth]
    )
    return {
        "id": item.row.id,
        "asked": question_text(task),
        "choices": None if task.choices is None else list(task.choices),
        "gold": gold,
        "images": [[picture.width, picture.height] for picture in item.pictures],
        "groups": dict(item.groups),
    }


def _facts(benchmark: Benchmark) -> Table:
    table = whole_table("", "", title=Text(benchmark.title), title_justify="left", show_header=False)
    scorer = benchmark.scorer
    lines = {
        "about": benchmark.about,
        "data": _place(benchmark) + (f", revision {benchmark.hub.revision}" if benchmark.hub else ""),
        "rows": "not known" if benchmark.rows is None else str(benchmark.rows),
        "licence": benchmark.licence,
        "rule": f"{scorer.official} ({scorer.source})",
        "differs": scorer.differs,
        "lenient": scorer.lenient or "",
        "groups": ", ".join(benchmark.metrics.by),
        "headline": f"mean inside each {benchmark.metrics.over}, then over them" if benchmark.metrics.over else "mean",
    }
    for key, value in lines.items():
        if value:
            table.add_row(Text(key), Text(value))
    return table


def _row_text(row: dict[str, Any]) -> Text:
    sizes = ", ".join(f"{width}x{height}" for width, height in row["images"]) or "none"
    groups = ", ".join(f"{name}={label}" for name, label in row["groups"].items())
    text = Text(f"\n{plain(row['id'])}\n", style="bold")
    body = f"{plain(row['asked'][:_SHOWN_CHARS])}\n  gold: {plain(str(row['gold'])[:_SHOWN_CHARS])}\n"
    return text.append(f"{body}  images: {sizes}\n  groups: {plain(groups)}", style="not bold")


def _print_json(record: dict[str, Any]) -> None:
    typer.echo(json.dumps(record, ensure_ascii=False))
