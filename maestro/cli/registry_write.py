"""`maestro registry new` and `maestro registry import`: registry files out of a template, or out of Agent Skills.

    maestro registry new expert Leaf-Reader
    maestro registry new skill "Leaf Questions" --out plugins/leaves.yaml
    maestro registry import skills/ --skill Office_Work --out office.yaml

What is written passes `maestro registry check` as it is. A file that exists is never overwritten without
`--force`; `--out -` writes to standard output.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from registry.agent_skills import Imported, Importer, Message, plain_name, registry_text
from registry.errors import RegistryFault, UnknownName, UserFault
from registry.names import name_fault, nearest, normalise
from registry.registry import Registry
from registry.skill_folders import find_documents
from registry.starters import KINDS, Kind, starter

MANY = 12  # subskills; an expert that is to choose among more of them is shown too much
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="File to write; '-' is standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")]


def new(
    kind: Annotated[str, typer.Argument(help="'expert' or 'skill'.")],
    name: Annotated[str, typer.Argument(help="Its name, as the policy will write it.")],
    out: Out = None,
    registry: Annotated[
        list[Path] | None,
        typer.Option("--registry", metavar="PATH", help="What it will extend. Default: the embedded registry."),
    ] = None,
    force: Force = False,
) -> None:
    """Write a commented starter file for an expert or a skill, by default NAME.yaml in this folder."""
    chosen: Kind | None = next((one for one in KINDS if one == kind), None)
    if chosen is None:
        hint = next(iter(nearest(kind, KINDS, 1)), None)
        raise UserFault(f"there is no starter for {kind!r}", fix=f"use {hint!r}" if hint else "use 'expert' or 'skill'")
    replace = _is_taken(Registry.load(*registry or ()), chosen, name)
    path = out or Path(f"{normalise(name) or 'starter'}.yaml")
    file = "FILE" if str(path) == "-" else str(path)
    _write(path, starter(chosen, name, file=file, replace=replace), force)
    if str(path) != "-":
        print(f"wrote {path}")
        print(f"next: fill it in, then run `maestro registry check {path}`")


def import_(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with SKILL.md files in or below it.")],
    out: Out = None,
    skill: Annotated[
        str | None, typer.Option("--skill", metavar="NAME", help="The Level-1 skill to make. Default: DIR's name.")
    ] = None,
    description: Annotated[
        str | None, typer.Option("--description", help="Of the Level-1 skill. Default: a list of what it holds.")
    ] = None,
    max_chars: Annotated[
        int, typer.Option("--max-chars", min=200, max=200_000, help="Instructions kept of each, in characters.")
    ] = 12_000,
    strict: Annotated[bool, typer.Option("--strict", help="Write nothing if any document is refused.")] = False,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object about it.")] = False,
) -> None:
    """Turn Agent Skills (folders with a SKILL.md) into the subskills of one skill. Scripts are never run."""
    from orchestrator.neutralise import neutralise

    if not folder.is_dir():
        raise UserFault("there is no such folder", where=str(folder), fix="give the folder that holds the skills")
    name = skill if skill is not None else plain_name(folder.absolute().name)
    fault = name_fault(name)
    if fault is not None:
        raise UserFault(fault, where="--skill" if skill is not None else str(folder), fix="give --skill NAME")
    path = out or Path(f"{normalise(name)}.yaml")
    if as_json and str(path) == "-":
        raise UserFault("--json and --out - both want standard output", fix="give --out FILE")
    _refuse_existing(path, force)
    messages: list[Message] = []
    made: list[Imported] = []
    importer = Importer(neutralise, max_chars)
    told = 0
    for found in find_documents(folder):
        one = importer.take(found, messages)
        if one is not None:
            made.append(one)
        for message in messages[told:]:
            print(message, file=sys.stderr)
        told = len(messages)
    refused = sum(message.refused for message in messages)
    if not made or (strict and refused):
        what = f"{refused} of {refused + len(made)} SKILL.md files refused" if refused else "no SKILL.md file found"
        raise UserFault(f"{what}; nothing is written", where=str(folder), fix="DIR must hold folders with a SKILL.md")
    routing = "keyword" if len(made) > MANY else "auto"
    text = registry_text(name, neutralise(description or _about(made)), made, routing)
    _check_text(text)
    _write(path, text, force)
    if as_json:
        record = {"file": str(path), "skill": name, "imported": len(made), "refused": refused}
        record["messages"] = [
            {"file": m.path, "line": m.line, "message": m.text, "refused": m.refused} for m in messages
        ]
        print(json.dumps(record, ensure_ascii=False))
    elif str(path) != "-":
        print(f"wrote {path}: skill {name} with {len(made)} subskill{'' if len(made) == 1 else 's'}; {refused} refused")
        print(f"next: read it, then run `maestro registry check {path}`")


def _is_taken(base: Registry, kind: str, name: str) -> bool:
    """Whether the base has a part of that name. Raises UserFault where the name is another one's alias."""
    try:
        found = base.expert(name) if kind == "expert" else base.skill(name)
    except UnknownName:
        return False
    if normalise(found.name) != normalise(name):
        raise UserFault(f"the name {name!r} already stands for the {kind} {found.name!r}", fix="choose another name")
    return True


def _about(made: list[Imported]) -> str:
    names, text = [one.subskill.name for one in made], ""
    for count, name in enumerate(names):
        if len(text) + len(name) > 160:
            return f"Follows written instructions for {text} and {len(names) - count} more."
        text = f"{text}, {name}" if text else name
    return f"Follows written instructions for {text}."


def _check_text(text: str) -> None:
    """What was made is read back before anyone relies on it. Raises RegistryFault."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "imported.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            Registry.load(path)
        except RegistryFault as fault:
            # Not the user's fault, but better told than written.
            raise UserFault(f"the imported text is no registry file: {fault.faults[0].message}") from fault


def _refuse_existing(path: Path, force: bool) -> None:
    if path.is_dir():
        raise UserFault("is a folder, not a file to write", where=str(path), fix="give --out a file name")
    if str(path) != "-" and path.exists() and not force:
        raise _exists(path)


def _exists(path: Path) -> UserFault:
    return UserFault("the file exists already", where=str(path), fix="give --out another name, or --force")


def _write(path: Path, text: str, force: bool) -> None:
    """Write the whole file or none of it."""
    if str(path) == "-":
        sys.stdout.write(text)
        return
    _refuse_existing(path, force)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    made = False
    try:
        if not force:
            path.open("x").close()  # ours from here on; fails where somebody was faster
            made = True
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except FileExistsError:
        raise _exists(path) from None
    except BaseException:
        part.unlink(missing_ok=True)
        if made:
            path.unlink(missing_ok=True)
        raise
