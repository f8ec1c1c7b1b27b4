"""`maestro registry check`: every fault in the files, between them, and in the programs that they name.

    maestro registry check my_expert.yaml
    maestro registry check --registry paper my_skills/ --json

Files are checked as they will be used: laid over `--registry`. Without it they are laid over the embedded
registry, or stand alone where that gives fewer faults and they hold both an expert and a skill.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from experts.clients.load import Group, load_class
from registry.errors import Fault, RegistryFault, UserFault
from registry.loader import expand
from registry.registry import Registry, default_registry_path
from registry.schema import Expert, PythonBackend, Tool

Part = tuple[str, str]  # kind and name


@dataclass(frozen=True)
class Reading:
    """How the files were read: over which base (none: alone), what came out, and what the files brought."""

    base: tuple[str, ...]
    loaded: Registry | None
    faults: tuple[Fault, ...]
    clashes: tuple[Fault, ...] = ()
    """Faults of laying files that stand alone over the embedded registry."""

    @property
    def complete(self) -> bool:
        """Whether it could be used: it holds an expert and a skill."""
        return self.loaded is not None and bool(self.loaded.experts) and bool(self.loaded.skills)


def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Files or folders to check on top of the registry."),
    ] = None,
    registry: Annotated[
        list[Path] | None,
        typer.Option(
            "--registry", metavar="PATH", help="What the files extend; may be repeated. Default: the embedded one."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Find every fault in the files, between them, and in the programs they name. Exit code 2 if any."""
    found = read(files or (), registry or ())
    loaded = found.loaded
    if found.faults or loaded is None:
        if not as_json:
            raise RegistryFault(found.faults)
        record = {"ok": False, "on_top_of": found.base, "faults": [_record(one) for one in found.faults]}
        typer.echo(json.dumps(record, ensure_ascii=False))
        raise typer.Exit(UserFault.exit_code)
    counts = {
        "experts": len(loaded.experts),
        "skills": len(loaded.skills),
        "subskills": sum(len(skill.subskills) for skill in loaded.skills),
        "tools": len(loaded.tools),
    }
    brought = _brought(loaded, files or ())
    if as_json:
        record = {"ok": True, "on_top_of": found.base, "faults": [], **counts, "digest": loaded.digest}
        record["brings"] = [{"kind": kind, "name": name} for kind, name in brought]
        typer.echo(json.dumps(record, ensure_ascii=False))
        return
    console = Console(soft_wrap=True)
    console.print(Text(f"No faults: {', '.join(f'{n} {k[:-1] if n == 1 else k}' for k, n in counts.items())}."))
    if files:
        over = f"on top of {', '.join(map(_shown, found.base))}" if found.base else "standing alone"
        console.print(Text(f"Checked {over}; the files bring {_listing(brought)}."))
    if found.clashes:
        count = "1 fault" if len(found.clashes) == 1 else f"{len(found.clashes)} faults"
        note = f"Note: it can't extend the embedded registry, that would be {count}; the first: {found.clashes[0]}"
        console.print(Text(note))


def read(files: Sequence[Path], registry: Sequence[Path]) -> Reading:
    """The reading of `files` that has the fewest faults, out of those that make sense."""
    if registry or not files:
        return _load(registry, files)
    extended = _load((default_registry_path(),), files)
    if not extended.faults:
        return extended
    alone = _load((), files)
    if len(alone.faults) >= len(extended.faults) or not (alone.faults or alone.complete):
        return extended
    clashes = () if alone.faults else extended.faults
    return Reading((), alone.loaded, alone.faults, clashes)


def _load(base: Sequence[Path], files: Sequence[Path]) -> Reading:
    names = tuple(map(str, base))
    try:
        loaded = Registry.load(*base, *files)
    except RegistryFault as fault:
        return Reading(names, None, fault.faults)
    return Reading(names, loaded, tuple(_missing_programs(loaded, _own(loaded, files))))


def _own(loaded: Registry, files: Sequence[Path]) -> set[Part]:
    """The parts that stand in `files`; all parts where there are none."""
    inside = {str(path) for path in expand(files, [])}
    return {part for part, (file, _) in loaded.places.items() if not files or file in inside}


def _missing_programs(loaded: Registry, own: set[Part]) -> Iterator[Fault]:
    """Faults of `target`s that can't be imported. Constructors are not run."""
    groups: tuple[tuple[str, Group, tuple[Expert, ...] | tuple[Tool, ...]], ...] = (
        ("expert", "maestro.experts", loaded.experts),
        ("tool", "maestro.tools", loaded.tools),
    )
    for kind, group, parts in groups:
        for part in parts:
            if isinstance(part.backend, PythonBackend) and (kind, part.name) in own:
                try:
                    load_class(part.backend.target, group)
                except UserFault as fault:
                    file, line = loaded.places[kind, part.name]
                    fix = f" ({fault.fix})" if fault.fix else ""
                    yield Fault(f"{kind} {part.name!r}, backend.target: {fault.what}{fix}", file, line)


def _brought(loaded: Registry, files: Sequence[Path]) -> list[Part]:
    own = _own(loaded, files)
    return [part for part in loaded.places if part in own]


def _shown(path: str) -> str:
    return "the embedded registry" if path == str(default_registry_path()) else path


def _listing(parts: Sequence[Part]) -> str:
    shown = [f"{kind} {name}" for kind, name in parts[:10]]
    return ", ".join(shown) + (f" and {len(parts) - 10} more" if len(parts) > 10 else "")


def _record(fault: Fault) -> dict[str, Any]:
    return {"file": fault.file, "line": fault.line, "message": fault.message, "hint": fault.hint}
