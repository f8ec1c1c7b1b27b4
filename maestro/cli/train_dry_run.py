"""`maestro train --dry-run CONFIG`: every setting that verl would get, who set it, and verl's own checks.

Starts nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from maestro.cli.whole_table import whole_table

if TYPE_CHECKING:
    from train.dry_run import DryRun, Setting


def tell(path: Path, overrides: Sequence[str], *, as_json: bool) -> None:
    """Print the dry run of a config: a table for readers, one JSON object for programs."""
    os.environ.setdefault("VERL_LOGGING_LEVEL", "ERROR")  # read when verl is imported; no accelerator is no news here
    from train.dry_run import dry_run

    found = dry_run(path, overrides)
    if as_json:
        print(json.dumps(_data(found)))
        return
    console = Console()
    table = whole_table("verl's setting", "value", "set by")
    for setting in found.settings:
        table.add_row(setting.key, _shown(setting.value), _who(setting))
    console.print(table)
    for note in found.notes:
        console.print(Text.assemble(("note", "yellow"), f"  {note}"))
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    console.print(f"[green]fits[/]  {len(found.settings)} settings, checked by {versions}; nothing was started")


def _who(setting: Setting) -> str:
    return f"{setting.set_by} ({setting.origin})" if setting.origin else setting.set_by


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _data(found: DryRun) -> dict[str, object]:
    return {
        "settings": [vars(setting) for setting in found.settings],
        "config": json.loads(found.config.model_dump_json()),
        "environment": found.environment,
        "versions": found.versions,
        "notes": list(found.notes),
    }
