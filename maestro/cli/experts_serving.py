"""`maestro experts serve` and `maestro experts status`: the registry's models as servers.

maestro experts serve --registry paper.yaml --dry-run --gpus 0,1,2,3 --gpu-memory 80
maestro experts serve --registry paper.yaml
maestro experts status --registry paper.yaml
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from maestro.cli.plain_text import plain
from maestro.cli.whole_table import whole_table

if TYPE_CHECKING:
    from experts.serving.endpoints_file import EndpointsFile
    from experts.serving.gpus import Gpu
    from experts.serving.launch import Launch
    from experts.serving.plan import Plan
    from experts.serving.server import Rules
    from experts.serving.supervisor import Supervisor

RegistryPaths = Annotated[
    list[Path] | None,
    typer.Option("--registry", metavar="PATH", help="A YAML file or a folder of them; may be repeated."),
]
EndpointsPath = Annotated[
    Path, typer.Option("--endpoints", metavar="FILE", help="Where the servers are, for pools to read.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
_DEFAULT_ENDPOINTS = Path("runs/serving/endpoints.json")


def serve(
    registry: RegistryPaths = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="An expert or tool; may be repeated.")
    ] = None,
    gpus: Annotated[str | None, typer.Option("--gpus", metavar="0,1,...", help="GPUs to use; else all.")] = None,
    gpu_memory: Annotated[
        float | None, typer.Option("--gpu-memory", min=1, metavar="GB", help="Plan for GPUs of this size.")
    ] = None,
    utilization: Annotated[
        float, typer.Option("--gpu-memory-utilization", min=0.05, max=1.0, help="Share of each GPU to use.")
    ] = 0.9,
    cpu: Annotated[bool, typer.Option("--cpu", help="Serve on the processor.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print placement and commands; start nothing.")] = False,
    endpoints: EndpointsPath = _DEFAULT_ENDPOINTS,
    engine: Annotated[Literal["vllm", "ray"], typer.Option("--engine", help="Servers, or a Ray Serve app.")] = "vllm",
    ray_config: Annotated[
        Path | None, typer.Option("--ray-config", metavar="FILE", help="Where --engine ray writes its application.")
    ] = None,
    start: Annotated[bool, typer.Option("--start", help="With --engine ray: start it too.")] = False,
    vllm: Annotated[str, typer.Option("--vllm", metavar="PATH", help="The vllm program.")] = "vllm",
    start_timeout: Annotated[
        float, typer.Option("--start-timeout", min=1, metavar="S", help="Until a server must answer, downloads too.")
    ] = 1800.0,
    restarts: Annotated[
        int, typer.Option("--restarts", min=0, max=1000, help="Failures in a row before a server is given up.")
    ] = 5,
    drain: Annotated[
        float, typer.Option("--drain", min=0, metavar="S", help="For running requests when the end is asked for.")
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Place the registry's served models, start and watch a server for each, and tell pools where they are."""
    from experts.serving.model import served_models
    from experts.serving.plan import make_plan
    from experts.serving.server import Rules
    from registry.errors import UserFault
    from registry.registry import Registry

    if start and engine != "ray":
        raise UserFault("--start belongs to --engine ray", fix="leave it out: servers are started anyway")
    planning = dry_run or engine == "ray"
    loaded = Registry.load(*registry or ())
    served_models(loaded, only or ())  # a wrong name is said before an absent GPU
    plan = make_plan(
        loaded,
        _gpus(gpus, gpu_memory, cpu, planning),
        only=only or (),
        utilization=utilization,
        vllm=vllm,
        start=not planning,
    )
    rules = Rules(start_s=start_timeout, restarts=restarts, drain_s=drain)
    if engine == "ray":
        file = ray_config or endpoints.with_name("ray_app.yaml")
        _serve_with_ray(plan, file, endpoints, start, dry_run, rules, as_json)
        return
    if dry_run:
        typer.echo(json.dumps(plan.record(), ensure_ascii=False)) if as_json else _show(plan)
        return
    for note in plan.notes:
        _say(note)
    _supervise(plan.launches, endpoints, rules, as_json)


def status(
    registry: RegistryPaths = None,
    endpoints: EndpointsPath = _DEFAULT_ENDPOINTS,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, metavar="S", help="For one question.")] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Ask every server of the endpoints file one question with a picture. Exit code 1 when one does not answer."""
    from experts.endpoints import read_endpoints
    from experts.serving.status import statuses
    from registry.registry import Registry

    found = asyncio.run(statuses(read_endpoints(endpoints), Registry.load(*registry or ()), timeout))
    well = bool(found) and all(server.healthy for server in found)
    if as_json:
        typer.echo(json.dumps({"servers": [server.record() for server in found]}, ensure_ascii=False))
    elif not found:
        typer.echo("no server answers now: the endpoints file names none")
    else:
        table = whole_table("model", "for", "address", "health", "running", "waiting", "seconds", "breaker", box=None)
        for server in found:
            table.add_row(
                Text(f"{server.model}\nvllm {server.version}" if server.version else server.model),
                *map(Text, (", ".join((*server.experts, *server.tools)), server.url)),
                Text("well", style="green") if server.healthy else Text("not well", style="red"),
                *("-" if count is None else str(count) for count in (server.running, server.waiting)),
                "-" if server.latency_s is None else f"{server.latency_s:.2f}",
                server.breaker,
            )
        Console().print(table)
        for server in found:
            if server.fault:
                typer.echo(plain(f"{server.url}: {server.fault}"))
    if not well:
        raise typer.Exit(1)


def _gpus(gpus: str | None, memory: float | None, cpu: bool, planning: bool) -> tuple[Gpu, ...]:
    from experts.serving.gpus import found_gpus, host, parse_indices, planned_gpus
    from registry.errors import UserFault

    if cpu:
        if gpus or memory:
            raise UserFault("--cpu goes with neither --gpus nor --gpu-memory")
        return host()
    indices = None if gpus is None else parse_indices(gpus)
    if memory is None:
        return found_gpus(indices)
    if not planning:
        raise UserFault("--gpu-memory assumes GPUs, so it only plans", fix="add --dry-run, or leave it out")
    return planned_gpus(indices or (0,), memory)


def _show(plan: Plan) -> None:
    """The placement as a table, then one command a line, ready for a shell."""
    from experts.serving.placement import budget_gib

    placement = plan.placement
    table = whole_table(
        "device and its models", "answers for", "weights", "cache", "rest", "sum GiB", "share", box=None
    )
    for column in table.columns[2:]:
        column.justify = "right"
    for gpu in placement.gpus:
        usable = budget_gib(gpu, placement.utilization)
        table.add_row(
            Text(f"{gpu.label}, {usable:.1f} of {gpu.total_gib:.1f} GiB usable", style="bold"), "", "", "", "",
            f"{placement.needed_gib(gpu):.1f}", f"{sum(server.fraction for server in placement.on(gpu)):.3f}",
        )  # fmt: skip
        for server in placement.on(gpu):
            memory = server.memory
            table.add_row(
                Text(f"  {server.model.id}"), Text(", ".join(server.model.users)),
                f"{memory.weights_gib:.1f}", f"{memory.cache_gib:.1f}", f"{memory.rest_gib:.1f}",
                f"{memory.total_gib:.1f}", f"{server.fraction:.3f}",
            )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    whole = sum(placement.needed_gib(gpu) for gpu in placement.gpus)
    room = sum(budget_gib(gpu, placement.utilization) for gpu in placement.gpus)
    typer.echo(f"{len(placement.servers)} servers need {whole:.1f} GiB of {room:.1f} GiB usable")
    for part in plan.elsewhere:
        typer.echo(f"{part.name} is served elsewhere: {', '.join(part.urls)}")
    for note in plan.notes:
        typer.echo(note)
    typer.echo("share: --gpu-memory-utilization of each server; all memory is estimated, on the high side")
    typer.echo("\nwhat is started, for each server:")
    for launch in plan.launches:
        typer.echo(launch.shell(launch.wanted_port))


def _serve_with_ray(
    plan: Plan, file: Path, endpoints: Path, start: bool, dry_run: bool, rules: Rules, as_json: bool
) -> None:
    from experts.serving.ports import free_port
    from experts.serving.ray_app import RAY_PORT, ray_application, ray_launch, ray_schema_fault, write_application
    from registry.errors import UserFault

    port = free_port(RAY_PORT) if start else RAY_PORT
    application = ray_application(plan.placement, port)
    if dry_run:
        import yaml

        typer.echo(json.dumps(application) if as_json else yaml.safe_dump(application, sort_keys=False))
        return
    write_application(application, file)
    fault = ray_schema_fault(application)
    if not start:
        if as_json:
            typer.echo(json.dumps({"file": str(file), "application": application, "not_checked": fault}))
        else:
            typer.echo(f"written: {file}; on the cluster: serve run {file}")
            _say(f"not checked by Ray: {fault}" if fault else "checked by Ray's own schema")
        return
    if fault:
        raise UserFault(fault, where=str(file), fix="install `ray[llm]` with the vLLM that it was made for")
    _supervise([ray_launch(plan.placement, file, port)], endpoints, rules, as_json)


def _supervise(launches: Sequence[Launch], endpoints: Path, rules: Rules, as_json: bool) -> None:
    from experts.serving.endpoints_file import EndpointsFile
    from experts.serving.supervisor import Supervisor

    for launch in launches:
        launch.secrets()  # a key that is not set is said before anything starts
    with EndpointsFile(endpoints) as file:
        supervisor = Supervisor(launches, file, logs=file.path.parent / "logs", rules=rules, say=_say)
        asyncio.run(_until_stopped(supervisor, file, as_json))


async def _until_stopped(supervisor: Supervisor, file: EndpointsFile, as_json: bool) -> None:
    stop, hurry = asyncio.Event(), asyncio.Event()

    def asked() -> None:
        if stop.is_set():
            hurry.set()
            return
        stop.set()
        _say("stops: no new requests, then what runs is answered; once more to end at once")

    def settled() -> None:
        if as_json:
            servers = [
                {"model": model.id, "url": f"{server.base}/v1", "state": str(server.state)}
                for server in supervisor.servers
                for model in server.launch.models
            ]
            typer.echo(json.dumps({"endpoints": str(file.path), "servers": servers}, ensure_ascii=False))
            sys.stdout.flush()
        else:
            _say(f"ready; endpoints in {file.path}; Ctrl-C ends")

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, asked)
    await supervisor.run(stop, hurry, settled)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
