"""YAML files and folders in, checked parts out, all faults at once.

Order: paths as given. `embedded` and the other names in `configs/registry/` stand for the files there; a
folder stands for its `*.yaml` and `*.yml` files by name (its sub-folders are not entered); a file that is met
twice is read once. A later file adds to the earlier ones. An entry whose name exists already is a fault
unless its body says `replace: true`; then it takes the earlier entry's place, and its position in the order.

Every fault carries file and line. Nothing is returned unless there is none.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from registry.checks import check
from registry.entries import Entry
from registry.errors import Fault, RegistryFault
from registry.findings import Path as FieldPath
from registry.findings import explain
from registry.names import nearest, normalise
from registry.salvage import salvage
from registry.scalars import Plain
from registry.schema import Expert, Skill, Tool
from registry.yamltree import Mapping, Node, Scalar, read_tree

SECTIONS: dict[str, tuple[str, type[BaseModel]]] = {
    "experts": ("expert", Expert),
    "skills": ("skill", Skill),
    "tools": ("tool", Tool),
}
SHIPPED = Path(__file__).resolve().parent.parent / "configs" / "registry"
_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Loaded:
    """The parts of all files together, and where each stands: (kind, name) -> file and line."""

    experts: tuple[Expert, ...]
    skills: tuple[Skill, ...]
    tools: tuple[Tool, ...]
    places: dict[tuple[str, str], tuple[str, int]]


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """While files are read, nothing of what is made is garbage; Python's collector would walk all of it again and
    again, and take more time than everything else together."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@collector_at_rest()
def load(paths: Seq[str | Path]) -> Loaded:
    """Read all files. Raises `RegistryFault` with every fault found."""
    faults: list[Fault] = []
    files = expand(paths, faults)
    entries: dict[tuple[str, str], Entry] = {}
    for file in files:
        for entry in _read_entries(file, faults):
            _merge(entry, entries, faults)
    found = list(entries.values())
    faults.extend(_cross_check(found))
    if not entries and not faults:
        faults.append(Fault("no experts, skills or tools in it", ", ".join(map(str, files))))
    if faults:
        order = {str(file): index for index, file in enumerate(files)}
        raise RegistryFault(sorted(dict.fromkeys(faults), key=lambda f: (order.get(f.file, -1), f.file, f.line or 0)))
    return Loaded(
        experts=tuple(entry.part for entry in found if entry.kind == "expert"),
        skills=tuple(entry.part for entry in found if entry.kind == "skill"),
        tools=tuple(entry.part for entry in found if entry.kind == "tool"),
        places={(entry.kind, entry.name): (entry.file, entry.line) for entry in found},
    )


def expand(paths: Seq[str | Path], faults: list[Fault]) -> list[Path]:
    """Files to read, in order, each once. A bare name that is no path here stands for a shipped registry."""
    files: dict[Path, Path] = {}
    for path in map(_shipped, paths):
        if path.is_dir():
            inside = sorted(child for child in path.iterdir() if child.suffix in _SUFFIXES and child.is_file())
            if not inside:
                faults.append(Fault("the folder holds no *.yaml file", str(path)))
        elif path.is_file():
            inside = [path]
        else:
            inside = []
            siblings = [child.name for child in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
            if len(path.parts) == 1:
                siblings += [child.stem for child in sorted(SHIPPED.glob("*.yaml"))]
            reason = "is not a file or folder" if path.exists() else "no such file or folder"
            faults.append(Fault(reason, str(path), hint=next(iter(nearest(path.name, siblings, 1)), None)))
        for file in inside:
            files.setdefault(file.resolve(), file)
    return list(files.values())


def _shipped(path: str | Path) -> Path:
    path = Path(path)
    shipped = SHIPPED / f"{path}.yaml"
    bare = len(path.parts) == 1 and not path.suffix and not path.exists()
    return shipped if bare and shipped.is_file() else path


def _read_entries(file: Path, faults: list[Fault]) -> list[Entry]:
    name = str(file)
    tree = read_tree(file, faults)
    if tree is None:
        return []
    if not isinstance(tree, Mapping):
        faults.append(Fault("expected a mapping with 'experts:', 'skills:' or 'tools:'", name, tree.line))
        return []
    entries: list[Entry] = []
    for key, section in tree.entries.values():
        if key.text not in SECTIONS:
            hint = next(iter(nearest(key.text, SECTIONS, 1)), None)
            known = ", ".join(SECTIONS)
            faults.append(Fault(f"unknown key {key.text!r}; known: {known}", name, key.line, hint))
            continue
        kind, model = SECTIONS[key.text]
        if isinstance(section, Mapping):
            for entry_key, body in section.entries.values():
                entries.append(_read_entry(kind, model, entry_key, body, name, faults))
        elif not _is_nothing(section):
            faults.append(Fault(f"{key.text!r} must map names to bodies", name, section.line))
    return entries


def _read_entry(kind: str, model: type[BaseModel], key: Scalar, body: Node, file: str, faults: list[Fault]) -> Entry:
    entry = Entry(kind, key.text.strip(), file, key.line, body)
    if not isinstance(body, Mapping):
        faults.append(entry.fault((), "must be a mapping of fields"))
        return entry
    data = _named(key, body, (), entry, faults, skip=("replace",))
    if "replace" in body.entries:
        entry.replace = _read_replace(body.entries["replace"][1], entry, faults)
    try:
        entry.part = model.model_validate(data)
        entry.name = entry.part.name
    except ValidationError as error:
        entry.faulty = True
        faults.extend(entry.fault(path, message, hint) for path, message, hint in explain(error, model))
        if kind == "skill":
            entry.part = salvage(data)
    return entry


def _read_replace(node: Node, entry: Entry, faults: list[Fault]) -> bool:
    text = node.text if isinstance(node, Scalar) else None
    if text not in ("true", "false"):
        faults.append(entry.fault(("replace",), "must be true or false"))
    return text == "true"


def _named(
    key: Scalar, body: Mapping, path: FieldPath, entry: Entry, faults: list[Fault], skip: Seq[str] = ()
) -> dict[str, Any]:
    """A body as plain data, with its key as `name`."""
    data: dict[str, Any] = {}
    for name, (_, node) in body.entries.items():
        if name in skip:
            continue
        if name == "name":
            faults.append(entry.fault(path, "the name is the entry's key; leave the key 'name' out"))
        elif name == "subskills" and entry.kind == "skill" and not path:
            data[name] = _subskills(node, (name,), entry, faults)
        else:
            data[name] = _plain(node)
    data["name"] = key.text
    return data


def _subskills(node: Node, path: FieldPath, entry: Entry, faults: list[Fault]) -> list[Any]:
    if not isinstance(node, Mapping):
        faults.append(entry.fault(path, "must map names to bodies"))
        # Stands for what is missing, so that the rest of the skill is checked all the same.
        return []
    return [
        _named(key, body, (*path, index), entry, faults) if isinstance(body, Mapping) else _plain(body)
        for index, (key, body) in enumerate(node.entries.values())
    ]


def _plain(node: Node) -> Any:
    """A tree as plain data."""
    if isinstance(node, Scalar):
        if not node.plain:
            return node.text
        return Plain(node.text) if node.text else None
    if isinstance(node, Mapping):
        return {name: _plain(inner) for name, (_, inner) in node.entries.items()}
    return [_plain(inner) for inner in node.items]


def _is_nothing(node: Node) -> bool:
    return isinstance(node, Scalar) and node.plain and not node.text


def _merge(entry: Entry, entries: dict[tuple[str, str], Entry], faults: list[Fault]) -> None:
    key = (entry.kind, normalise(entry.name))
    earlier = entries.get(key)
    if earlier is None and entry.replace:
        names = [other.name for other in entries.values() if other.kind == entry.kind]
        hint = next(iter(nearest(entry.name, names, 1)), None)
        faults.append(entry.fault((), "says 'replace: true' but no earlier file has it", hint))
    elif earlier is not None and earlier.file == entry.file:
        faults.append(entry.fault((), f"is here twice (first at line {earlier.line})"))
    elif earlier is not None and not entry.replace:
        place = f"{earlier.file}:{earlier.line}"
        faults.append(entry.fault((), f"is already at {place}; write 'replace: true' into it to replace that one"))
    # Assigning to an existing key keeps its place in the order.
    entries[key] = entry


def _cross_check(entries: list[Entry]) -> list[Fault]:
    owner = {(entry.kind, entry.part.name): entry for entry in entries if entry.part is not None}

    def parts(kind: str) -> list[Any]:
        return [entry.part for key, entry in owner.items() if key[0] == kind]

    faulty_tools = [entry.name for entry in entries if entry.kind == "tool" and entry.part is None]
    findings = check(parts("expert"), parts("skill"), parts("tool"), faulty_tools)
    return [owner[found.kind, found.name].fault(found.path, found.message, found.hint) for found in findings]
