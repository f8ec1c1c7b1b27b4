"""`maestro evaluate tables`: the paper's tables from finished runs.

maestro evaluate tables runs/chartqa runs/slake runs/vstar
maestro evaluate tables runs/*/ --table 1 --table 6 --format latex --out paper/tables
maestro evaluate tables runs/chartqa --row "Maestro*=runs/erqa-extended:after" --row "GPT-5=runs/closed:gpt_5"
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Shown
from rich.text import Text

if TYPE_CHECKING:
    from eval.tables.table import Column, Line, Table

_LABEL = 24
_GAP = 1


def tables(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUNS...", help="Folders of finished evaluations.")
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(
            "--row",
            metavar="NAME=RUN[:ARM]",
            help="Which arm of which run fills a row: the paper's of that name, or one of your own. Repeated: more"
            " benchmarks or seeds of the row.",
        ),
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option("--arm", metavar="NAME", help="Only these arms of RUNS, such as after or after/greedy."),
    ] = None,
    table: Annotated[
        list[int] | None, typer.Option("--table", metavar="N", help="1, 2, 6 to 11; all if left out.")
    ] = None,
    format: Annotated[Literal["md", "latex", "csv", "all"], typer.Option("--format", help="Files to write.")] = "all",
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the files.")] = Path("runs/tables"),
    ci: Annotated[bool, typer.Option("--ci", help="With 95 % intervals.")] = False,
    micro: Annotated[bool, typer.Option("--micro", help="With the average by questions too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """The paper's Tables 1, 2 and 6 to 11 from finished runs, its own figures beside yours; runs nothing."""
    from eval.tables.build import build
    from eval.tables.choice import Asked, own_rows
    from eval.tables.files import FORMATS, write_tables
    from eval.tables.paper import load_paper
    from eval.tables.tidy import to_json
    from eval.tables.unfilled import unfilled

    paper = load_paper()
    wanted = paper.choose(table or ())
    rows = own_rows(paper, runs or (), [Asked.parse(one) for one in row or ()], arm or ())
    made, left_out = [], {}
    for spec in wanted:
        one = build(paper, spec, rows, micro=micro)
        why = None if table else unfilled(paper, spec, one)  # a table that is asked for by number is shown
        if why is None:
            made.append(one)
        else:
            left_out[spec.number] = why
    formats = FORMATS if format == "all" else (format,)
    files = write_tables(made, out, formats, ci=ci, left_out=left_out)
    if as_json:
        answer = {
            "tables": [to_json(one) for one in made],
            "left_out": list(left_out.values()),
            "files": [str(path) for path in files],
        }
        typer.echo(json.dumps(answer, ensure_ascii=False, allow_nan=False))
        return
    console = Console()
    for one in made:
        tell(console, one, ci=ci)
    for why in left_out.values():
        console.print(Text(why, style="yellow"))
    for path in files:
        console.print(f"table    {path}", markup=False, highlight=False, soft_wrap=True)


def tell(console: Console, table: Table, *, ci: bool = False) -> None:
    """Print a table with its notes; columns that don't fit side by side follow below, none is cut off."""
    from eval.tables.escape import plain

    console.print(Text(table.heading, style="bold"))
    for columns in _fitting(table, console.width, ci):
        shown = Shown(box=None, padding=(0, 0, 0, _GAP), show_edge=False)
        shown.add_column("", max_width=_LABEL, overflow="fold")
        for column in columns:
            shown.add_column(Text(plain(column.short)), justify="right", no_wrap=True)
        heading = ""
        for line in table.lines:
            now = line.section
            if now and now != heading:
                shown.add_row(Text(plain(now), style="italic"))
            heading = now
            shown.add_row(Text(plain(_label(table, line))), *(_cell(line, column, ci) for column in columns),
                          style="dim" if line.paper else None)  # fmt: skip
        console.print(shown)
    for note in table.notes:
        console.print(Text(f"  {plain(note)}", style="dim"), soft_wrap=False)
    if table.missing:
        console.print(Text("  What would fill the dashes:", style="yellow"))
        for one in table.missing:
            console.print(Text(f"  - {plain(one)}", style="yellow"))
    console.print()


def _label(table: Table, line: Line) -> str:
    return f"{line.label}, {line.measure.label}" if table.names_measures and line.section == "" else line.label


def _cell(line: Line, column: Column, ci: bool) -> Text:
    cell = line.cell(column)
    text = Text(cell.text(line.measure), style="bold" if cell.best else "")
    interval = cell.interval(line.measure) if ci else ""
    return text.append(f"\n{interval}", style="not bold") if interval else text


def _fitting(table: Table, width: int, ci: bool) -> Iterator[Sequence[Column]]:
    """The columns in groups that fit beside the labels."""
    room = max(width - _LABEL - _GAP, 20)
    group: list[Column] = []
    used = 0
    for column in table.columns:
        need = _width(table, column, ci) + _GAP
        if group and used + need > room:
            yield group
            group, used = [], 0
        group.append(column)
        used += need
    if group or not table.columns:
        yield group


def _width(table: Table, column: Column, ci: bool) -> int:
    from eval.tables.escape import plain

    texts = [plain(column.short)]
    for line in table.lines:
        cell = line.cell(column)
        texts += [cell.text(line.measure), cell.interval(line.measure) if ci else ""]
    return max(cell_len(text) for text in texts)
