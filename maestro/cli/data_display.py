"""What `maestro data` shows: progress, the summary of a preparation, rows as they will be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from maestro.cli.plain_text import plain
from maestro.cli.whole_table import whole_table

if TYPE_CHECKING:
    from train.data.config import DataConfig
    from train.data.view import Shown

UNMEASURED = "not measured (give --processor FOLDER, for example runs/demo/policy)"
_SHOWN_CHARS = 2000


def tell(summary: dict[str, Any]) -> None:
    table = whole_table("source", "train", "validation", "read", "leaks", "skipped")
    for name, source in summary["sources"].items():
        skipped = ", ".join(f"{reason} {count}" for reason, count in source["skipped"].items())
        numbers = (source["train"], source["validation"], source["read"], source["leaks_dropped"])
        table.add_row(name, *map(str, numbers), skipped)
    Console().print(table)
    checked = summary["leak_check"]
    rows = sum(checked["benchmarks"].values())
    typer.echo(f"leak check: {rows} rows of {len(checked['benchmarks'])} benchmarks")
    if checked["without"]:
        typer.echo(f"not checked against: {', '.join(checked['without'])}")
    for split in ("train", "validation"):
        typer.echo(f"{split}: {summary[split]['rows']} rows, {summary[split]['file']}")


def explain_config(settings: DataConfig) -> None:
    table = whole_table("key", "value", "meaning")

    def walk(section: BaseModel, prefix: str) -> None:
        for name, field in type(section).model_fields.items():
            value = getattr(section, name)
            if isinstance(value, BaseModel):
                walk(value, f"{prefix}{name}.")
            elif isinstance(value, dict) and all(isinstance(one, BaseModel) for one in value.values()):
                for key, one in value.items():
                    walk(one, f"{prefix}{name}.{key}.")
            else:
                table.add_row(prefix + name, str(value), field.description or "")

    walk(settings, "")
    Console().print(table)


def row_record(row: Shown) -> dict[str, Any]:
    task = row.task
    measured = None
    if row.length is not None:
        measured = {"prompt": row.length.total, "images": list(row.length.images)}
    gold = task.ground_truth
    return {
        "number": row.number,
        "id": task.row_id,
        "data_source": task.benchmark,
        "group": task.group,
        "split": row.split,
        "asked": row.asked,
        "gold": gold if gold is None or isinstance(gold, str) else list(gold),
        "images": [[p.width, p.height] for p in task.pictures],
        "bytes": list(row.stored_bytes),
        "tokens": measured or row.tokens,
    }


def row_text(row: dict[str, Any]) -> str:
    pictures = ", ".join(
        f"{width}x{height} ({size / 1000:.0f} kB)"
        for (width, height), size in zip(row["images"], row["bytes"], strict=False)
    )
    tokens = row["tokens"]
    counted = UNMEASURED if tokens is None else f"{tokens['prompt']}, pictures {tokens['images']}"
    head = f"\nrow {row['number']}  {row['id']}  ({row['data_source']}, {row['split']})"
    return plain(
        f"{head}\n{row['asked'][:_SHOWN_CHARS]}\n  gold: {str(row['gold'])[:_SHOWN_CHARS]}\n"
        f"  images: {pictures or 'none'}\n  prompt tokens: {counted}"
    )


class Display:
    """How far the work is, on the terminal or as plain lines (a `train.data.prepare.Reporter`)."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description:<28}", markup=False), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console)
        self._console = console
        self._line: Any = None

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def phase(self, name: str, done: int) -> None:
        if self._console.is_terminal:
            self._line = self._progress.add_task(name, total=None, completed=done)
        else:
            self._console.print(name if not done else f"{name}: going on at row {done}", markup=False)

    def advance(self, rows: int) -> None:
        if self._console.is_terminal:
            self._progress.advance(self._line, rows)
