"""`maestro train plan CONFIG`: what a training run needs and takes, before it costs anything.

maestro train plan configs/train/paper_4xa100.yaml
maestro train plan configs/train/paper_4xa100.yaml --gpu H100 --gpus 8
maestro train plan configs/train/embedded.yaml --like runs/embedded
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from maestro.cli.whole_table import whole_table
from registry.errors import UserFault

if TYPE_CHECKING:
    from train.config import TrainConfig
    from train.plan.device import Device
    from train.plan.plan import Plan


def plan(
    config: Annotated[Path, typer.Argument(help="Training config, for example configs/train/paper_4xa100.yaml.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value changes, as `maestro train` takes.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PATH", help="The policy's config.json, where it is elsewhere.")
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", metavar="KIND", help="A100-80GB, A100-40GB, H100, H200, B200 or L40S."),
    ] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", min=1, max=1024, help="GPUs that a node has.")] = None,
    gpu_memory: Annotated[float | None, typer.Option("--gpu-memory", min=1, metavar="GB", help="Of one GPU.")] = None,
    colocate: Annotated[
        bool, typer.Option("--colocate-experts", help="The experts must fit on the training's GPUs.")
    ] = False,
    max_pixels: Annotated[
        int | None, typer.Option("--max-pixels", min=1024, help="The processor's limit to a picture's area.")
    ] = None,
    image_size: Annotated[
        str, typer.Option("--image-size", metavar="WxH", help="A usual picture, in pixels.")
    ] = "1024x768",
    like: Annotated[
        Path | None, typer.Option("--like", metavar="RUN", help="Take tokens from this run, and compare the times.")
    ] = None,
    prompt_tokens: Annotated[float | None, typer.Option("--prompt-tokens", min=1, help="Mean of a prompt.")] = None,
    policy_tokens: Annotated[float | None, typer.Option("--policy-tokens", min=1, help="Mean of an episode.")] = None,
    observation_tokens: Annotated[
        float | None, typer.Option("--observation-tokens", min=0, help="Mean of an observation.")
    ] = None,
    calls: Annotated[float | None, typer.Option("--calls", min=0, help="Mean delegations of an episode.")] = None,
    latency: Annotated[float | None, typer.Option("--expert-latency", min=0, help="Seconds of a delegation.")] = None,
    tail: Annotated[float | None, typer.Option("--tail", min=1, help="Longest episode over the mean.")] = None,
    update_mfu: Annotated[
        float | None, typer.Option("--update-mfu", min=0.001, max=1, help="Share of the peak in the update.")
    ] = None,
    prefill_mfu: Annotated[
        float | None, typer.Option("--prefill-mfu", min=0.001, max=1, help="Share of the peak in reading.")
    ] = None,
    step_overhead: Annotated[
        float | None, typer.Option("--step-overhead", min=0, metavar="S", help="Seconds a step for all else.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else; `fits` says whether it fits.")
    ] = False,
) -> None:
    """Memory a GPU, token budgets, time and experts of a training run, and the nearest settings that fit.

    Reads configs only: no weights, no GPU, no network. Ends with exit code 2 where the run does not fit.
    """
    from train.config import load_config
    from train.plan.find_model import architecture_of
    from train.plan.measured import read_measured
    from train.plan.plan import Wishes, make_plan, refusal

    settings = load_config(config, overrides or [])
    used = {
        "prompt": prompt_tokens, "policy": policy_tokens, "observation": observation_tokens, "calls": calls,
        "latency": latency, "tail": tail,
    }  # fmt: skip
    shares = {"update_mfu": update_mfu, "prefill_mfu": prefill_mfu, "step_s": step_overhead}
    device = replace(_device(settings, gpu, gpu_memory), **{k: v for k, v in shares.items() if v is not None})
    wishes = Wishes(
        gpus=gpus,
        colocate=colocate,
        max_pixels=max_pixels,
        image_size=_size(image_size),
        usage={name: value for name, value in used.items() if value is not None},
        measured=None if like is None else read_measured(like),
    )
    made = make_plan(settings, architecture_of(settings, model), device, wishes)
    if as_json:
        print(json.dumps(made.record()))
        return
    _show(made)
    if not made.fits:
        raise refusal(made, config)


def _device(settings: TrainConfig, gpu: str | None, memory: float | None) -> Device:
    from experts.serving.gpus import host
    from train.plan.device import cpu_device, device_of

    if settings.platform == "cuda":
        return device_of(gpu or "A100-80GB", memory)
    if gpu is not None:
        raise UserFault("this config trains on a CPU (platform: cpu)", where="--gpu", fix="add platform=cuda")
    return cpu_device(memory or host()[0].total_gib)


def _size(text: str) -> tuple[int, int]:
    width, sign, height = text.lower().partition("x")
    if not sign or not (width.isdecimal() and height.isdecimal()) or not (0 < int(width) < 10**5 > int(height) > 0):
        raise UserFault(f"{text!r} is no size in pixels", where="--image-size", fix="write for example 1024x768")
    return int(width), int(height)


def _show(made: Plan) -> None:
    console = Console()
    c, d = made.config.cluster, made.device
    where = "this host's CPU" if d.is_cpu else f"{c.nodes} x {c.gpus_per_node} {d.name} of {d.memory_gib:g} GiB"
    console.print(Text(f"{made.shape.source}: {made.shape.parameters:,} weights, on {where}"))
    for table in (_memory(made), _tokens(made), _time(made), _compared(made)):
        if table is not None:
            console.print(table)
    for title, lines in (("notes", made.notes), ("assumed", made.assumptions)):
        if lines:
            console.print(Text(title, style="bold"))
        for line in lines:
            console.print(Text(f"  - {line}"))
    if made.fits:
        console.print(Text(f"it fits, with {made.memory.room:.1f} GiB to spare on each GPU", style="green"))


def _memory(made: Plan) -> Table:
    m = made.memory
    table = whole_table("phase", "part", "GiB", "why", title=f"memory of one GPU (may be used: {m.limit:.1f} GiB)")
    for phase in m.phases:
        style = "red" if phase.total > m.limit else "bold"
        table.add_row(Text(phase.name, style=style), "", Text(f"{phase.total:.1f}", style=style), "")
        for part in phase.parts:
            if part.gib >= 0.005:
                table.add_row("", part.name, f"{part.gib:.2f}", part.why)
    table.add_row("cache", "rollout", f"{m.kv_gib:.2f}", f"{m.kv_tokens} tokens, {m.kv_rows:.1f} of the longest rows")
    return table


def _tokens(made: Plan) -> Table:
    b, u = made.budget, made.use
    table = whole_table("", "limit", f"{u.source}", title="tokens of an episode")
    table.add_row("prompt", str(b.prompt), f"{u.prompt:.0f}")
    table.add_row("  system prompt", "", str(b.system))
    table.add_row("  picture", "-" if b.image_limit is None else str(b.image_limit), f"{u.image:.0f}")
    table.add_row("after the prompt", str(b.trajectory), f"{u.response:.0f}")
    table.add_row("  policy", f"{b.turn} a turn", f"{u.policy:.0f}")
    table.add_row("  an observation", str(b.observation), f"{u.observation:.0f}")
    table.add_row("  delegations", str(b.horizon), f"{u.calls:.2g}")
    table.add_row("whole row", str(b.longest_row), f"{u.total:.0f}")
    return table


def _time(made: Plan) -> Table:
    from train.plan.paper import PAPER

    steps = made.config.grpo.steps
    mean, most = made.time.record(steps), made.at_limits.record(steps)
    table = whole_table("", "expected", "every limit", title=f"seconds of a step, and of {steps} steps")
    for name, value in mean["seconds"].items():
        table.add_row(name.replace("_", " "), f"{value:.1f}", f"{most['seconds'][name]:.1f}")
    table.add_row(Text("a step", style="bold"), f"{mean['step_seconds']:.1f}", f"{most['step_seconds']:.1f}")
    table.add_row(Text("the run", style="bold"), f"{mean['run_hours']:.1f} h", f"{most['run_hours']:.1f} h")
    table.caption = "expected: episodes of the usual length; every limit: each as long as it may become"
    if not made.device.is_cpu:
        row = f" (this estimate at {made.paper_row:.0f} tokens a row)" if made.paper_row else ""
        table.caption += f"\nthe paper's own run: {PAPER.step:.0f} s a step, {PAPER.seconds / 3600:.0f} h{row}"
    return table


def _compared(made: Plan) -> Table | None:
    if made.measured is None:
        return None
    table = whole_table("", "estimated", "measured", "ratio", title=f"against {made.measured.root} (seconds, medians)")
    for part in made.measured.against(made.time):
        table.add_row(part["part"], f"{part['estimated']:.2f}", f"{part['measured']:.2f}", f"{part['ratio']:.2f}")
    return table
