"""`maestro registry`: look at what can be called, check it, see the prompt, try the routing.

    maestro registry show
    maestro registry check --registry base.yaml --registry my_skills/
    maestro registry prompt --style compact
    maestro registry route --skill Chart_Problem_Solver --question "How high is the bar of 2020?"

Each command reads the embedded registry unless `--registry` says otherwise; with `--json` exactly one JSON
object goes to standard output. Faults of the files are raised as `UserFault`; the application prints them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from experts.clients.load import Group, load_class
from registry.errors import Fault, RegistryFault, UserFault
from registry.prompt import Style, system_prompt
from registry.registry import Registry
from registry.routing import route as choose_route
from registry.schema import Expert, OpenAIBackend, PythonBackend, Step, Subskill, Tool

app = typer.Typer(
    name="registry", help="Experts, skills and tools: show, check, prompt, route.", no_args_is_help=True
)

RegistryPaths = Annotated[
    list[Path] | None,
    typer.Option(
        "--registry",
        metavar="PATH",
        help="A YAML file or a folder of them; may be repeated, later ones extend earlier ones.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@app.command()
def show(registry: RegistryPaths = None, as_json: AsJson = False) -> None:
    """List experts, skills with their subskills, and tools."""
    loaded = Registry.load(*registry or ())
    if as_json:
        _print_json(
            {
                "experts": [part.model_dump(mode="json") for part in loaded.experts],
                "skills": [part.model_dump(mode="json") for part in loaded.skills],
                "tools": [part.model_dump(mode="json") for part in loaded.tools],
                "digest": loaded.digest,
            }
        )
        return
    console = Console()
    console.print(_parts_table("Experts", loaded.experts))
    console.print(_skills_table(loaded))
    if loaded.tools:
        console.print(_parts_table("Tools", loaded.tools))


@app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Files or folders, laid over each other in order.")
    ] = None,
    registry: RegistryPaths = None,
    as_json: AsJson = False,
) -> None:
    """Find every fault in the files, between them, and in the programs they name. Exit code 2 if any."""
    try:
        loaded = Registry.load(*[*(registry or ()), *(files or ())])
        missing = tuple(_missing_programs(loaded))
        if missing:
            raise RegistryFault(missing)
    except RegistryFault as fault:
        if not as_json:
            raise
        _print_json({"ok": False, "faults": [_fault_record(one) for one in fault.faults]})
        raise typer.Exit(UserFault.exit_code) from None
    counts = {
        "experts": len(loaded.experts),
        "skills": len(loaded.skills),
        "subskills": sum(len(skill.subskills) for skill in loaded.skills),
        "tools": len(loaded.tools),
    }
    if as_json:
        _print_json({"ok": True, "faults": [], **counts, "digest": loaded.digest})
    else:
        listing = ", ".join(f"{n} {kind[:-1] if n == 1 else kind}" for kind, n in counts.items())
        Console().print(Text(f"No faults: {listing}."))


@app.command()
def prompt(
    registry: RegistryPaths = None,
    style: Annotated[str, typer.Option(help="'full' or 'compact'.")] = "full",
    horizon: Annotated[int, typer.Option(help="Delegations allowed in an episode.")] = 4,
    as_json: AsJson = False,
) -> None:
    """Print the system prompt that the policy is given."""
    chosen: Style = "compact" if style == "compact" else "full"
    if style != chosen:
        raise UserFault(f"unknown prompt style {style!r}", where="--style", fix="use 'full' or 'compact'")
    text = system_prompt(Registry.load(*registry or ()), chosen, horizon)
    if as_json:
        _print_json({"style": chosen, "horizon": horizon, "prompt": text})
    else:
        # Not through rich: names in square brackets would be read as markup, long lines be wrapped.
        typer.echo(text)


@app.command()
def route(
    skill: Annotated[str, typer.Option(help="A Level-1 skill.")],
    question: Annotated[str, typer.Option(help="The question to route.")],
    registry: RegistryPaths = None,
    as_json: AsJson = False,
) -> None:
    """Say which subskill a question leads to, and why. No expert is asked: keywords, then the default."""
    found = Registry.load(*registry or ()).skill(skill)
    chosen = asyncio.run(choose_route(found, question, None))
    if as_json:
        _print_json({"skill": found.name, "subskill": chosen.subskill.name, "reason": chosen.reason})
        return
    table = Table("Skill", "Subskill", "Reason")
    table.add_row(*map(Text, (found.name, chosen.subskill.name, chosen.reason)))
    Console().print(table)
    if chosen.reason == "default" and found.routing != "keyword":
        Console().print(
            Text("In an episode the expert would be asked to choose before the default is taken.")
        )


def _missing_programs(loaded: Registry) -> Iterator[Fault]:
    """Faults of `target`s that can't be imported. Constructors are not run."""
    groups: tuple[tuple[str, Group, tuple[Expert, ...] | tuple[Tool, ...]], ...] = (
        ("expert", "maestro.experts", loaded.experts),
        ("tool", "maestro.tools", loaded.tools),
    )
    for kind, group, parts in groups:
        for part in parts:
            if isinstance(part.backend, PythonBackend):
                try:
                    load_class(part.backend.target, group)
                except UserFault as fault:
                    file, line = loaded.places[kind, part.name]
                    yield Fault(f"{kind} {part.name!r}, backend.target: {fault.what}", file, line)


def _fault_record(fault: Fault) -> dict[str, Any]:
    return {"file": fault.file, "line": fault.line, "message": fault.message, "hint": fault.hint}


def _print_json(record: dict[str, Any]) -> None:
    typer.echo(json.dumps(record, ensure_ascii=False))


def _parts_table(title: str, parts: tuple[Expert, ...] | tuple[Tool, ...]) -> Table:
    table = Table("Name", "Answered by", "Good at", title=title, title_justify="left")
    for part in parts:
        table.add_row(*map(Text, (part.name, _backend(part.backend), part.description)))
    return table


def _backend(backend: OpenAIBackend | PythonBackend) -> str:
    if isinstance(backend, PythonBackend):
        return backend.target
    count = len(backend.replicas)
    return f"{backend.model} ({count} replica{'' if count == 1 else 's'})"


def _skills_table(loaded: Registry) -> Table:
    table = Table("Skill", "Subskill", "Keywords", "Steps", title="Skills", title_justify="left")
    for skill in loaded.skills:
        table.add_section()
        for index, subskill in enumerate(skill.subskills):
            title = f"{skill.name} ({skill.routing})" if index == 0 else ""
            keywords = ", ".join(subskill.keywords)
            default = skill.default_subskill() is subskill and len(skill.subskills) > 1
            name = f"{subskill.name} (default)" if default else subskill.name
            table.add_row(*map(Text, (title, name, keywords, _steps(subskill))))
    return table


def _steps(subskill: Subskill) -> str:
    def words(steps: tuple[Step, ...]) -> str:
        return " > ".join((step.tool or "ask") + ("?" if step.when else "") for step in steps)

    procedure = subskill.procedure
    text = words(procedure.steps)
    if procedure.repair is not None:
        text += f" > up to {procedure.repair.rounds} x ({words(procedure.repair.steps)})"
    return text
