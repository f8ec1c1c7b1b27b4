"""The `maestro` command: finds the subcommand, runs it, and turns whatever goes wrong into one clear message.

The one idea: a subcommand's module is imported only when that subcommand runs, so `maestro --help` starts at
once and `maestro parse` never loads a training library. A new subcommand is a file `<name>_cmd.py` and one
line in `COMMANDS`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from maestro.cli.faults import ending
from maestro.cli.plain_text import JSON_ESCAPES, plain

DEBUG_VARIABLE = "MAESTRO_DEBUG"


@dataclass(frozen=True)
class Lazy:
    """Where a subcommand lives: its typer app is `<module>.app`, or its function `<module>.<function>`."""

    help: str
    module: str
    function: str

    def load(self, name: str, function: str | None = None) -> Any:
        module = importlib.import_module(self.module)
        found = getattr(module, "app", None) if function is None else None
        if not isinstance(found, typer.Typer):
            found = typer.Typer(add_completion=False)
            found.command(cls=_WithSecondWords)(getattr(module, function or self.function))
        found._add_completion = False
        command = typer.main.get_command(found)
        command.name = name
        return command


class _WithSecondWords(TyperCommand):
    """Its help ends with the words that may stand in the place of its first argument, each with its own first line."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        words = {word: function for (name, word), function in SECOND_WORDS.items() if name == self.name}
        if not words or self.name is None:
            return
        from rich.console import Console
        from rich.markup import escape
        from rich.panel import Panel
        from rich.table import Table

        table = Table(box=None, show_header=False)
        table.add_column(style="bold cyan", no_wrap=True)
        table.add_column()
        for word, function in words.items():
            about = COMMANDS[self.name].load(f"{self.name} {word}", function).help or ""
            table.add_row(word, escape(about.partition("\n")[0]))
        Console().print(Panel(table, title=f"Or {self.name} ...", title_align="left", border_style="dim"))


COMMANDS = {
    "registry": Lazy(
        "What can be called: show, check, prompt, route, new, import.", "maestro.cli.registry_cmd", "registry"
    ),
    "parse": Lazy("Read one policy turn from standard input.", "maestro.cli.parse_cmd", "parse"),
    "answer": Lazy("Answer a question on an image, turn by turn.", "maestro.cli.answer_cmd", "answer"),
    "score": Lazy("Score one answer by its benchmark's rule.", "maestro.cli.score_cmd", "score"),
    "reward": Lazy("The reward of a trajectory record, and why.", "maestro.cli.reward_cmd", "reward"),
    "train": Lazy("Train an orchestrator: cold start, then GRPO.", "maestro.cli.train_cmd", "train"),
    "evaluate": Lazy(
        "Evaluate on a benchmark; `evaluate report RUN` writes the report.",
        "maestro.cli.evaluate_cmd",
        "evaluate",
    ),
    "demo": Lazy("The whole loop on this machine: train, evaluate, answer.", "maestro.cli.demo_cmd", "demo"),
    "benchmarks": Lazy("The benchmarks: list, show, check.", "maestro.cli.benchmarks_cmd", "benchmarks"),
    "serve": Lazy("The orchestrator as a chat model with tools, over HTTP.", "maestro.cli.agentic_cmd", "serve"),
    "data": Lazy("Training rows: prepare, inspect.", "maestro.cli.data_cmd", "data"),
    "experts": Lazy("Serve and measure the experts: serve, status, matrix.", "maestro.cli.experts_cmd", "experts"),
}
# Words that follow a subcommand which is a plain function, and lead to another function of its module.
SECOND_WORDS = {
    ("evaluate", word): word for word in ("report", "replay", "merge", "compare", "power", "tables", "study")
}
SECOND_WORDS |= {("train", word): word for word in ("watch", "report", "analyse", "plan", "preflight", "export")}


class LazyGroup(TyperGroup):
    """Lists the subcommands of the table above by their help lines, and imports the one that is called."""

    def __init__(self, **settings: Any) -> None:
        stand_ins = {name: TyperCommand(name=name, help=lazy.help) for name, lazy in COMMANDS.items()}
        super().__init__(**{**settings, "commands": stand_ins})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, stand_in, rest = super().resolve_command(ctx, args)
        if name is None or stand_in is None or ctx.resilient_parsing:
            return name, stand_in, rest
        second = SECOND_WORDS.get((name, rest[0])) if rest else None
        if second is not None:
            full_name = f"{name} {rest[0]}"
            return full_name, COMMANDS[name].load(full_name, second), rest[1:]
        return name, COMMANDS[name].load(name), rest


app = typer.Typer(
    name="maestro",
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train, evaluate and run an orchestrator that delegates image questions to expert-skill pairs.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from maestro import __version__

        print(f"maestro {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
) -> None:
    """Options that stand before the subcommand."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program's name) and return its exit code. Never raises an
    Exception.
    """
    words, debug = _without_debug(arguments)
    try:
        code = typer.main.get_command(app).main(args=words, prog_name="maestro", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:  # Ctrl-C, as the framework reports it
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except Abort:
        return _end(KeyboardInterrupt(), debug)
    except TyperException as error:
        show = getattr(error, "show", None)  # usage errors show the usage line before the message
        show() if show is not None else print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # the framework's own ending for it
            return _end(error.__context__, debug)
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except (Exception, KeyboardInterrupt) as error:
        return _end(error, debug)


def main() -> None:
    """Entry point of the `maestro` program."""
    # Read when torch is loaded, here and in what is started from here: threads that spin while they wait for each other
    # take five times as long as soon as somebody else uses a core.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        # Half characters in a file or an argument, and terminals that lack a character, are shown as they can be.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=JSON_ESCAPES)
    code = run(sys.argv[1:])
    workers = sys.modules.get("experts.workers")
    if workers is not None and workers.calls_given_up():
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The words without `--debug`, which may stand anywhere before a lone `--`, and whether it was there."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--debug"]
    asked = len(kept) < end or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
    return kept + words[end:], asked


def _end(error: BaseException, debug: bool) -> int:
    end = ending(error)
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    if end.message:
        print(plain(end.message), file=sys.stderr)
    if isinstance(error, BrokenPipeError):
        # The reader of standard output is gone; the interpreter's last flush must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return end.exit_code


if __name__ == "__main__":
    main()
