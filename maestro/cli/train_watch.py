"""`maestro train watch RUN`: a training in the terminal, read from its folder alone.

maestro train watch runs/embedded
maestro train watch /shared/runs/paper --once
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from maestro.cli.plain_text import plain

if TYPE_CHECKING:
    from train.run_view import RunView

_BLOCKS = "▁▂▃▄▅▆▇█"
_CURVE = 40  # characters of a sparkline
_ROWS: tuple[tuple[str, str, str], ...] = (
    ("reward", "reward", "+.3f"),
    ("accuracy", "accuracy", ".3f"),
    ("validation.accuracy", "validation: first, last", ".3f"),
    ("malformed", "malformed rollouts", ".1%"),
    ("calls", "calls an episode", ".2f"),
    ("copied", "sub-question = question", ".0%"),
    ("entropy", "entropy", ".3f"),
    ("kl", "KL", ".4f"),
    ("prob_gap", "probability gap", ".1e"),
    ("grad_norm", "gradient norm", ".3f"),
    ("response_tokens", "response tokens", ".1f"),
    ("cut_turns", "rollouts with a cut turn", ".1%"),
    ("invalid", "lost rollouts", ".1%"),
    ("expert_failures", "failed calls", ".1%"),
    ("groups_flat", "flat groups", ".0%"),
    ("seconds", "seconds a step", ".1f"),
)
_STATES = {"paused": "bold red", "quiet": "bold yellow", "finished": "bold green"}


def watch(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run, here or on a shared disk.")],
    once: Annotated[bool, typer.Option("--once", help="Print it once and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it once, as one JSON object.")] = False,
    every: Annotated[float, typer.Option("--every", min=0.2, help="Seconds between two looks.")] = 2.0,
) -> None:
    """Watch a training: progress, rates, curves, alarms. Ends when the run is finished, or with Ctrl-C."""
    from train.run_view import read_view

    view = read_view(run)
    if as_json:
        typer.echo(json.dumps(view.to_json()))
        return
    console = Console()
    if once or not console.is_terminal:
        console.print(show(view, console.width))
        return
    with Live(show(view, console.width), console=console, refresh_per_second=4) as live:
        while view.state != "finished":
            time.sleep(every)
            view = read_view(run)
            live.update(show(view, console.width))


def show(view: RunView, width: int = 100) -> RenderableType:
    """The view as rich draws it; width: characters of a line."""
    parts: list[RenderableType] = [_head(view)]
    if view.steps:
        bar = Table.grid()
        bar.add_row(ProgressBar(total=view.steps, completed=view.step, width=60))
        parts.append(bar)
    if view.pause is not None:
        p = view.pause
        ending = "given up" if p.given_up else f"{p.waiting} rollouts wait"
        parts.append(Text(plain(f"paused for {p.seconds:.0f} s: {p.why}; {ending}"), style="bold red"))
    if view.history:
        parts += [_numbers(view, max(8, min(_CURVE, width - 58))), _lines(view)]
    for one in view.alarms:
        last = f", again until step {one.last}" if one.times > 1 else ""
        parts.append(
            Text(plain(f"{one.alarm.name}: {one.alarm.text}{last}"), style="red" if one.alarm.fatal else "yellow")
        )
    return Group(*parts)


def _head(view: RunView) -> Text:
    text = Text(f"{view.name}  ", style="bold")
    text.append(view.state, style=_STATES.get(view.state, "cyan"))
    if view.cold is not None:
        cold = view.cold
        text.append(f"  cold start {cold.get('step')}/{cold.get('steps')}, loss {cold.get('loss')}", style="not bold")
    else:
        text.append(f"  step {view.step}/{view.steps}", style="not bold")
    if view.state in ("training", "paused", "quiet") and view.step < view.steps:
        text.append(f"  rollouts {view.rollouts}/{view.of_rollouts}", style="not bold")
    if view.seconds_a_step is not None:
        text.append(f"  {view.seconds_a_step:.1f} s/step", style="not bold")
    if view.left_s and view.state != "finished":
        text.append(f"  {_duration(view.left_s)} left", style="not bold")
    if view.age_s is not None and view.state != "finished":
        text.append(f"  last sign of life {_duration(view.age_s)} ago", style="not bold dim")
    return text


def _numbers(view: RunView, curve: int) -> Table:
    from train.curves import ends, series

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="dim")
    for name, where in (("", "left"), ("first 10", "right"), ("last 10", "right"), ("now", "right")):
        table.add_column(name, justify=where)  # type: ignore[arg-type]
    table.add_column(f"step {view.history[0]['step']} to {view.step}", no_wrap=True)
    for key, name, form in _ROWS:
        values = [value for _, value in series(view.history, key)]
        found = ends(view.history, key)
        if found is None or (key in ("invalid", "expert_failures", "cut_turns") and not any(values)):
            continue
        told = ("–" if value is None else format(value, form) for value in found)
        table.add_row(name, *told, Text(sparkline(values, curve), style="cyan"))
    return table


def _lines(view: RunView) -> Table:
    """What is no curve: pairs, sources, groups, experts, the time of the last step."""
    from train.step_metrics import TIME_PARTS

    last = view.history[-1]
    calls = max(1, sum(last.get("pairs", {}).values()))
    lines = {
        "pairs": [f"{pair} {count / calls:.0%}" for pair, count in list(last.get("pairs", {}).items())[:5]],
        "accuracy by source": _named(last.get("accuracy_by_source"), ".2f"),
        "accuracy by group": _named(last.get("accuracy_by_group"), ".2f"),
        "groups": _groups(last),
        "experts": [_expert(name, own) for name, own in (last.get("experts") or {}).items()],
        "time": [f"{part.removeprefix('seconds_')} {last[part]:.1f} s" for part in TIME_PARTS if last.get(part)],
    }
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, parts in lines.items():
        if parts:
            table.add_row(name, Text(plain(", ".join(parts))))
    return table


def _named(values: dict[str, Any] | None, form: str) -> list[str]:
    known = {name: value for name, value in (values or {}).items() if value is not None}
    return [f"{name} {value:{form}}" for name, value in known.items()] if len(known) > 1 else []


def _groups(last: dict[str, Any]) -> list[str]:
    names = ("all_right", "all_wrong", "flat", "excluded")
    counts = [f"{last[f'groups_{n}']} {n.replace('_', ' ')}" for n in names if last.get(f"groups_{n}") is not None]
    return [f"{last.get('groups')} in the step", *counts] if counts else []


def _expert(name: str, own: dict[str, Any]) -> str:
    latency = "" if own.get("seconds_p95") is None else f", {own['seconds_p50']:.2f} s (p95 {own['seconds_p95']:.2f} s)"
    failed = f", {own['failed']} failed" if own["failed"] else ""
    return f"{name} {own['calls']} calls{failed}{latency}"


def sparkline(values: Sequence[float], width: int = _CURVE) -> str:
    """A curve of at most `width` characters; each stands for the mean of as many values."""
    import math

    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ""
    count = min(width, len(known))
    cuts = [round(place * len(known) / count) for place in range(count + 1)]
    means = [_mean(known[a:b]) for a, b in pairwise(cuts)]
    low, high = min(means), max(means)
    if high == low:
        return _BLOCKS[3] * count
    return "".join(_BLOCKS[round((value - low) / (high - low) * (len(_BLOCKS) - 1))] for value in means)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
