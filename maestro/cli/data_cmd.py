"""`maestro data`: the rows that a policy is trained on, prepared, checked and looked at.

    maestro data prepare configs/data/paper.yaml --data-root ~/data
    maestro data inspect data/paper/train.parquet --limit 3

With `--json` exactly one JSON object goes to standard output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from maestro.cli.data_display import Display
    from train.data.config import DataConfig
    from train.data.mixture import Mixture
    from train.data.row import MixtureRow
    from train.data.workspace import Workspace

app = typer.Typer(name="data", help="Training rows: prepare, inspect.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@app.command()
def prepare(
    config: Annotated[Path, typer.Argument(help="Data config, for example configs/data/paper.yaml.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="key=value changes, for example out=data/try sources.slake.rows=900.")
    ] = None,
    data_root: Annotated[
        Path | None, typer.Option("--data-root", help="Local copies of the sources; the hub where not given.")
    ] = None,
    benchmark_root: Annotated[
        Path | None, typer.Option("--benchmark-root", help="Local copies of the benchmarks; --data-root if not given.")
    ] = None,
    drop_leaks: Annotated[
        bool, typer.Option("--drop-leaks", help="Take other rows in place of those that benchmarks hold too.")
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Forget the work so far in the out folder.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print every key with its value and meaning, then stop.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write train.parquet and validation.parquet, or say why not. Running it again goes on where it stopped.

    Rows that an evaluation benchmark holds too are listed, and nothing is written, unless --drop-leaks is given.
    """
    from eval.yaml_config import load_config
    from maestro.cli.data_display import Display, explain_config, tell
    from maestro.cli.data_sources import specs_of
    from train.data.config import DataConfig
    from train.data.lengths import load_lengths
    from train.data.mixture import write_lines, write_summary
    from train.data.prepare import Inputs
    from train.data.prepare import prepare as gather
    from train.data.workspace import FILE, Workspace

    settings = load_config(DataConfig, config, overrides or [])
    if explain:
        explain_config(settings)
        return
    benchmarks = benchmark_root or data_root
    specs = specs_of(settings, config.resolve().parent, data_root, benchmarks)
    system = _system(settings)
    lengths = None if settings.processor is None else load_lengths(settings.processor, system)
    if restart:
        for name in (FILE, f"{FILE}-journal"):
            (settings.out / name).unlink(missing_ok=True)
    work = Workspace(settings.out, specs.identity(settings, system))
    try:
        sources, evaluated = specs.readers(settings.deadline_s)
        with Display(Console(stderr=True)) as display:
            try:
                mixture = gather(settings, Inputs(sources, evaluated, lengths), work, display)
            finally:
                write_lines(settings.out / "skipped.jsonl", work.skipped())
            write_lines(settings.out / "leaks.jsonl", mixture.leaks)
            if not drop_leaks:
                mixture.refuse_leaks(settings.out)
            mixture.refuse_short(settings.out)
            counts = _write(settings, mixture, work, system, display)
        summary = _summary(settings, mixture, work, counts, list(specs.benchmarks))
        write_summary(settings.out / "summary.json", summary)
    finally:
        work.close()
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        tell(summary)


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="A parquet file, or the out folder of a preparation.")],
    limit: Annotated[int, typer.Option(min=0, max=1000, help="Rows to show.")] = 3,
    first: Annotated[int, typer.Option("--from", min=0, help="Number of the first row to show, from 0.")] = 0,
    processor: Annotated[
        str | None, typer.Option("--processor", help="Measure tokens now, with this policy's processor.")
    ] = None,
    system: Annotated[bool, typer.Option("--system", help="Show the system prompt, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rows as they will be seen: text, picture sizes, token counts, gold answer."""
    from maestro.cli.data_display import row_record, row_text
    from maestro.cli.plain_text import plain
    from train.data.lengths import load_lengths
    from train.data.view import count_rows, show_rows

    path = file / "train.parquet" if file.is_dir() else file
    total = count_rows(path)
    head = next(iter(show_rows(path, first=first, limit=1)), None)
    lengths = None if processor is None or head is None else load_lengths(processor, head.system)
    rows = [row_record(row) for row in show_rows(path, first=first, limit=limit, lengths=lengths)]
    prompt = None if head is None else head.system
    if as_json:
        typer.echo(json.dumps({"file": str(path), "rows": total, "system": prompt, "shown": rows}, ensure_ascii=False))
        return
    typer.echo(f"{path}: {total} rows; system prompt of {len(prompt or '')} characters")
    if system and prompt:
        typer.echo(plain(prompt))
    for row in rows:
        typer.echo(row_text(row))


def _system(settings: DataConfig) -> str | None:
    if settings.prompt_style == "none":
        return None
    from registry.prompt import system_prompt
    from registry.registry import Registry, default_registry_path

    registry = Registry.load(*(settings.registry or (default_registry_path(),)))
    return system_prompt(registry, settings.prompt_style, settings.horizon)


def _write(
    settings: DataConfig, mixture: Mixture, work: Workspace, system: str | None, display: Display
) -> dict[str, int]:
    from eval.benchmarks.parquet import write_parquet
    from eval.benchmarks.row import Row

    def rows(split: str) -> Iterable[Any]:
        display.phase(f"writing {split}", 0)
        for row in mixture.rows(work, split):
            display.advance(1)
            yield Row(**_fields(row))

    return {
        split: write_parquet(rows(split), settings.out / f"{split}.parquet", system_prompt=system)
        for split in ("validation", "train")
    }


def _fields(row: MixtureRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in type(row).__dataclass_fields__}


def _summary(
    settings: DataConfig, mixture: Mixture, work: Workspace, counts: dict[str, int], benchmarks: list[str]
) -> dict[str, Any]:
    from collections import Counter

    taken = {split: Counter(pick[1] for pick in getattr(mixture, split)) for split in ("train", "validation")}
    reasons: dict[str, Counter[str]] = {name: Counter() for name in settings.sources}
    for record in work.skipped():
        reasons.setdefault(record["source"], Counter())[record["reason"]] += 1
    leaked = Counter(leak["source"] for leak in mixture.leaks)
    return {
        "name": settings.name,
        "seed": settings.seed,
        "train": {"file": str(settings.out / "train.parquet"), "rows": counts["train"]},
        "validation": {"file": str(settings.out / "validation.parquet"), "rows": counts["validation"]},
        "sources": {
            name: {
                "train": taken["train"][name],
                "validation": taken["validation"][name],
                "read": work.progress(name)[0],
                "skipped": dict(reasons[name]),
                "leaks_dropped": leaked[name],
                "shows_validation_picture": mixture.passed_over[name],
            }
            for name in settings.sources
        },
        "leak_check": {
            "benchmarks": {name: work.progress(f"benchmark {name}")[0] for name in benchmarks},
            "without": list(settings.leaks.without),
        },
        "processor": settings.processor,
    }
