"""`maestro train preflight CONFIG`: what would stop a training run, looked at before it costs anything.

maestro train preflight configs/train/paper_4xa100.yaml
maestro train preflight configs/train/paper_4xa100.yaml --skip experts --json
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from train.config import TrainConfig
    from train.preflight.check import Check

_STYLES = {"ok": "green", "fault": "bold red", "skipped": "yellow"}


def preflight(
    config: Annotated[Path, typer.Argument(help="Training config, for example configs/train/paper_4xa100.yaml.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value changes, as `maestro train` takes.")] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="NAME", help="A check to pass over; may be repeated.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows of each file to look at, spread evenly.")] = 200,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=3600, metavar="S", help="For one question to a server or to Ray.")
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Versions, Ray, GPUs, ports, disk, policy, chat template, special tokens, rows and experts: one line each.

    Ends with exit code 2 where one of them would stop the run.
    """
    from train.config import load_config
    from train.preflight.preflight import run_checks
    from train.preflight.site import Site

    site = Site(load_config(config, overrides or []), rows=rows, timeout_s=timeout)
    console = Console()
    checks = []
    for check in run_checks(site, skip or ()):
        checks.append(check)
        if not as_json:
            tell(console, check)
    ready = all(check.state != "fault" for check in checks)
    if as_json:
        print(json.dumps({"ready": ready, "checks": [check.record() for check in checks]}, ensure_ascii=False))
    if not ready:
        raise typer.Exit(2)


def tell(console: Console, check: Check) -> None:
    """One line of one check, however long."""
    line = Text.assemble((f"{check.state:8}", _STYLES[check.state]), f"{check.name:10}", check.what)
    for name, text in (("where", check.where), ("fix", check.fix)):
        if text:
            line.append(f"  {name}: {text}")
    console.print(line, soft_wrap=True)


def require(settings: TrainConfig, config: Path, skip: Sequence[str], console: Console) -> None:
    """Before a run on GPUs: raises UserFault with all faults in one message; says what was not looked at."""
    from train.preflight.preflight import preflight as look
    from train.preflight.site import Site

    found = look(Site(settings), skip)
    if found.faults:
        raise found.refusal(str(config))
    for check in found.checks:
        if check.state == "skipped":
            tell(console, check)
