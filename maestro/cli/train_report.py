"""`maestro train report RUN`: the page of a training, finished or not, as one HTML file.

maestro train report runs/embedded
maestro train report /shared/runs/paper --out paper.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run, here or on a shared disk.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write; without it training.html in the run.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Write curves, numbers, alarms, pairs and sampled trajectories of a training as one self-contained page."""
    path = write_report(run, out)
    typer.echo(json.dumps({"report": str(path)}) if as_json else f"report   {path}")


def write_report(run: Path, out: Path | None = None, thumbnails: dict[str, str] | None = None) -> Path:
    """The page of the run in `run`, put in place whole. thumbnails: as in `render_training`. Raises UserFault."""
    from maestro.cli.train_page import render_training
    from train.paths import RunPaths
    from train.run_view import read_view

    path = RunPaths.at(run).page if out is None else out
    text = render_training(read_view(run), thumbnails)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return path


class LivePages:
    """Writes the page of a run anew while it trains. every: steps between two; 0: never. What hinders it is told once
    and hinders nobody else."""

    def __init__(self, run: Path, every: int, tell: Callable[[str], None]) -> None:
        self._run, self._every, self._tell = run, every, tell
        self._thumbnails: dict[str, str] = {}
        self._behind = False

    def step(self, record: dict[str, Any]) -> None:
        """A step has been recorded."""
        self._behind = self._every > 0
        if self._behind and record["step"] % self._every == 0:
            self.write()

    def write(self) -> None:
        """The page as of now, if steps have come since the last one."""
        if not self._behind:
            return
        self._behind = False
        try:
            write_report(self._run, thumbnails=self._thumbnails)
        except Exception as error:  # the border: a page must never end a training
            self._every = 0
            self._tell(f"training.html is not written any more: {type(error).__name__}: {error}")
