"""Progress on the terminal: one line for each phase, with rate and remaining time."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


def phases(progress: Progress) -> Callable[[str, int | None], Callable[[], None]]:
    """One line of the progress display for each phase, with rate and remaining time."""

    def start(name: str, steps: int | None) -> Callable[[], None]:
        line = progress.add_task(name, total=steps)
        return lambda: progress.advance(line)

    return start


class _Rate(ProgressColumn):
    """Steps a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s", style="dim")


def progress_display(console: Console) -> Progress:
    """The display; what is done lasts as long as its `with` block."""
    return Progress(
        TextColumn("{task.description:<24}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
    )
