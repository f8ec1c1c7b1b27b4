"""`maestro registry`: look at what can be called, check it, see the prompt, try the routing, add to it.

    maestro registry show
    maestro registry check my_skills/
    maestro registry prompt --style compact
    maestro registry route --skill Chart_Problem_Solver --question "How high is the bar of 2020?"
    maestro registry new expert Leaf-Reader
    maestro registry import skills/ --out my_skills/office.yaml

Each command reads the embedded registry unless `--registry` says otherwise (a path, or the name of a shipped one:
`--registry embedded --registry mine.yaml` is the embedded one and mine); with `--json` exactly one JSON
object goes to standard output. Faults of the files are raised as `UserFault`; the application prints them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from maestro.cli.registry_check import check
from maestro.cli.registry_write import import_, new
from maestro.cli.whole_table import whole_table
from registry.errors import UserFault
from registry.prompt import Style, system_prompt
from registry.registry import Registry
from registry.routing import route as choose_route
from registry.schema import Expert, OpenAIBackend, PythonBackend, Step, Subskill, Tool

app = typer.Typer(
    name="registry",
    help="Experts, skills and tools: show, check, prompt, route, new, import.",
    no_args_is_help=True,
)

RegistryPaths = Annotated[
    list[Path] | None,
    typer.Option(
        "--registry",
        metavar="PATH",
        help="A YAML file, a folder of them or 'embedded'; may be repeated, later ones extend earlier ones.",
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


app.command("check")(check)
app.command("new")(new)
app.command("import")(import_)


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
    table = whole_table("Skill", "Subskill", "Reason")
    table.add_row(*map(Text, (found.name, chosen.subskill.name, chosen.reason)))
    Console().print(table)
    if chosen.reason == "default" and found.routing != "keyword":
        Console().print(Text("In an episode the expert would be asked to choose before the default is taken."))


def _print_json(record: dict[str, Any]) -> None:
    typer.echo(json.dumps(record, ensure_ascii=False))


def _parts_table(title: str, parts: tuple[Expert, ...] | tuple[Tool, ...]) -> Table:
    table = whole_table("Name", "Answered by", "Good at", title=title, title_justify="left")
    for part in parts:
        table.add_row(*map(Text, (part.name, _backend(part.backend), part.description)))
    return table


def _backend(backend: OpenAIBackend | PythonBackend) -> str:
    if isinstance(backend, PythonBackend):
        return backend.target
    count = len(backend.replicas)
    return f"{backend.model} ({count} replica{'' if count == 1 else 's'})"


def _skills_table(loaded: Registry) -> Table:
    table = whole_table("Skill", "Subskill", "Keywords", "Steps", title="Skills", title_justify="left")
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
