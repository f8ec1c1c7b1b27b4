"""`maestro train CONFIG [key=value ...]`: from rows to a trained policy, with progress, resumable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from maestro.cli.files import tell_files
from maestro.cli.plain_text import plain
from maestro.cli.train_analyse import analyse
from maestro.cli.train_export import export
from maestro.cli.train_plan import plan
from maestro.cli.train_preflight import preflight, require
from maestro.cli.train_report import LivePages, report
from maestro.cli.train_watch import watch
from maestro.cli.whole_table import whole_table
from registry.errors import UserFault

# the second words of `maestro train` (see maestro.cli.app)
__all__ = ["analyse", "export", "plan", "preflight", "report", "train", "watch"]

if TYPE_CHECKING:
    from train.config import TrainConfig


def train(
    config: Annotated[Path, typer.Argument(help="Training config, for example configs/train/embedded.yaml.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="key=value changes, for example grpo.steps=40 seed=1 run=runs/try.")
    ] = None,
    registry: Annotated[
        list[str] | None, typer.Option("--registry", help="Registry file or folder; may be repeated.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print every key with its value and meaning, then stop.")
    ] = False,
    stop_on_collapse: Annotated[
        bool, typer.Option("--stop-on-collapse", help="End with exit code 3 when reward collapses or a number is NaN.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Compose and check verl's settings, print who set each, start nothing.")
    ] = False,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="NAME", help="A check before a run on GPUs to pass over.")
    ] = None,
) -> None:
    """Train an orchestrator: cold start on a keyword router, then GRPO through verl.

    Running the same command again goes on where the run stopped, whatever stopped it.
    """
    from train.config import describe, load_config

    given = [*(overrides or []), *([f"registry={json.dumps(registry)}"] if registry else [])]
    settings = load_config(config, given)
    if explain:
        _explain(settings, describe(settings), as_json)
        return
    if dry_run:
        from maestro.cli.train_dry_run import tell

        tell(config, given, as_json=as_json)
        return
    from train.grpo import TrainingCollapsed, TrainingFailed
    from train.pipeline import train as run
    from train.termination import Terminated

    console = Console(stderr=True)
    if settings.platform == "cuda":
        require(settings, config, skip or (), console)
    with Display(console) as display:
        display.pages = LivePages(settings.run, settings.watch.pages_every, display.warn)
        try:
            summary = run(settings, write_benchmark_rows(settings), display, stop_on_collapse=stop_on_collapse)
        except TrainingFailed as error:
            raise UserFault(
                str(error), where=str(settings.run), fix="mend the cause, then run the same command: it goes on"
            ) from error
        except TrainingCollapsed as error:
            console.print(_marked("stopped:", str(error)), soft_wrap=True)
            raise typer.Exit(3) from error
        except Terminated as error:
            console.print(error.text, soft_wrap=True)
            raise
        finally:
            display.pages.write()
    result = {"run": summary.root, "policy": f"{summary.root}/policy", **vars(summary)}
    if as_json:
        print(json.dumps(result))
    else:
        root = summary.root
        tell_files(console, policy=result["policy"], curves=f"{root}/curves.png", metrics=f"{root}/metrics.jsonl")
        tell_files(console, report=f"maestro train report {root}")


def write_benchmark_rows(settings: TrainConfig) -> Any:
    """Writes the rows of a benchmark's split; the generator lives with the benchmarks, training only reads the file."""
    if settings.data.benchmark != "embedded":
        raise UserFault(
            f"no generator for benchmark {settings.data.benchmark!r}",
            fix="use benchmark: embedded, or give data.train_files and data.validation_files",
        )

    def write(split: str, count: int, seed: int, file: Path) -> None:
        from eval.benchmarks.embedded.world import generate
        from eval.benchmarks.parquet import write_parquet
        from registry.prompt import system_prompt
        from registry.registry import Registry, default_registry_path

        style = settings.protocol.prompt_style
        system = None
        if style != "none":
            registry = Registry.load(*(settings.registry or (default_registry_path(),)))
            system = system_prompt(registry, style, settings.protocol.horizon)
        write_parquet(generate(split, count, seed), file, system_prompt=system)

    return write


def _explain(settings: TrainConfig, rows: list[tuple[str, str, str]], as_json: bool) -> None:
    if as_json:
        print(settings.model_dump_json())
        return
    table = whole_table("key", "value", "meaning")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _marked(head: str, text: str) -> Text:
    """A line under a red head. Its text may quote an expert: it is neither markup nor steers the terminal."""
    return Text.assemble((head, "bold red"), f" {plain(text)}")


class Display:
    """The terminal's view of a run (a `train.pipeline.Reporter`): one bar for the phase that is under way."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=console,
        )  # fmt: skip
        self._task: Any = None
        self.pages: LivePages | None = None
        self._plain = not console.is_terminal

    def __enter__(self) -> Display:
        if not self._plain:
            self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._plain:
            self._progress.stop()

    def phase(self, name: str, total: int) -> None:
        if self._plain:
            self.console.print(name)
            return
        if self._task is not None:
            self._progress.update(self._task, visible=False)
        self._task = self._progress.add_task(name, total=total or None, note="")

    def advance(self, done: int, note: str = "") -> None:
        if self._plain:
            if done % 100 == 0:
                self.console.print(f"  {done} {note}")
            return
        self._progress.update(self._task, completed=done, note=note)

    def step(self, record: dict[str, Any], steps: int) -> None:
        if self.pages is not None:
            self.pages.step(record)

        def show(key: str, form: str) -> str:
            return "-" if record.get(key) is None else format(record[key], form)

        note = (
            f"reward {show('reward', '+.2f')}  accuracy {show('accuracy', '.2f')}  entropy {show('entropy', '.2f')}  "
            f"malformed {show('malformed', '.1%')}  copied {show('copied', '.0%')}  {show('seconds', '.1f')} s/step"
        )
        if self._plain:
            self.console.print(f"  step {record['step']}/{steps}  {note}", soft_wrap=True)
            return
        self._progress.update(self._task, completed=record["step"], note=note)

    def warn(self, text: str) -> None:
        self.console.print(_marked("warning:", text), soft_wrap=True)
