"""What must hold between the parts of a registry, beyond each part's own fields.

Names are unique after normalisation, aliases included; a default subskill exists; steps name tools that
exist; templates parse; variables and pictures that a step uses come from an earlier step. Each finding
carries the path of the field, so that the loader can point at its line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from registry.names import nearest, normalise
from registry.schema import Expert, Procedure, Skill, Step, Tool
from registry.templates import Reading, read_condition, read_template
from registry.tool_checks import check_tool

Path = tuple[str | int, ...]
GIVEN_VARIABLES = ("question", "skill", "subskill", "views")
MOST_VIEWS = 4
GIVEN_PICTURES = ("image", *(f"image_{number}" for number in range(1, MOST_VIEWS + 1)))
SAVED_ATTRIBUTES = ("text", "data", "json")
_RESERVED = frozenset(
    {"and", "else", "false", "if", "in", "is", "loop", "none", "not", "or", "self", "super", "true"}
    | {"False", "None", "True", "caller", "varargs", "kwargs"}
)


@dataclass(frozen=True)
class Finding:
    """A fault in the part `kind` `name`, at the field `path`."""

    kind: str
    name: str
    path: Path
    message: str
    hint: str | None = None


def check(
    experts: Sequence[Expert],
    skills: Sequence[Skill],
    tools: Sequence[Tool],
    faulty_tools: Iterable[str] = (),
) -> Iterator[Finding]:
    """All findings about these parts together.

    `faulty_tools` names tools that are there but could not be read: steps which use them are not at fault.
    """
    for kind, parts in (("expert", experts), ("skill", skills), ("tool", tools)):
        for index, path, message in _clashes(kind, parts):
            yield Finding(kind, parts[index].name, path, message)
    for tool in tools:
        for path, message, hint in check_tool(tool):
            yield Finding("tool", tool.name, path, message, hint)
    tool_names = ToolNames(tools, faulty_tools)
    for skill in skills:
        for path, message, hint in _check_skill(skill, tool_names):
            yield Finding("skill", skill.name, path, message, hint)


class ToolNames:
    """The names under which tools are known, and those to suggest."""

    def __init__(self, tools: Sequence[Tool], faulty: Iterable[str]) -> None:
        self.shown = [*(tool.name for tool in tools), *faulty]
        aliases = [alias for tool in tools for alias in tool.aliases]
        self.known = frozenset(map(normalise, [*self.shown, *aliases]))


Problem = tuple[Path, str, str | None]


def _check_skill(skill: Skill, tools: ToolNames) -> Iterator[Problem]:
    """Findings inside one skill, as (path, message, hint)."""
    for index, path, message in _clashes("subskill", skill.subskills):
        yield ("subskills", index, *path), message, None
    if skill.default is not None and skill.find(skill.default) is None:
        names = [subskill.name for subskill in skill.subskills]
        yield ("default",), f"the default {skill.default!r} is not a subskill", _first(skill.default, names)
    for index, subskill in enumerate(skill.subskills):
        for path, message, hint in _check_procedure(subskill.procedure, tools):
            yield ("subskills", index, "procedure", *path), message, hint


def _clashes(kind: str, parts: Sequence) -> Iterator[tuple[int, Path, str]]:
    owners: dict[str, tuple[int, Path]] = {}
    labels: list[tuple[int, Path, str]] = [(index, ("name",), part.name) for index, part in enumerate(parts)]
    labels += [
        (index, ("aliases", position), alias)
        for index, part in enumerate(parts)
        for position, alias in enumerate(part.aliases)
    ]
    for index, path, label in labels:
        owner = owners.setdefault(normalise(label), (index, path))
        if owner != (index, path):
            other = parts[owner[0]].name
            same = "itself" if owner[0] == index else f"the {kind} {other!r}"
            yield index, path, f"the name {label!r} already stands for {same}"


@dataclass
class _Scope:
    """What a step may refer to at its place in the procedure."""

    variables: set[str] = field(default_factory=lambda: set(GIVEN_VARIABLES))
    pictures: set[str] = field(default_factory=lambda: set(GIVEN_PICTURES))


def _check_procedure(procedure: Procedure, tools: ToolNames) -> Iterator[Problem]:
    scope = _Scope()
    yield from _check_steps(procedure.steps, (), scope, tools)
    if procedure.repair is not None:
        repair = procedure.repair
        yield from _check_text(read_condition, repair.when, ("repair", "when"), scope.variables)
        yield from _check_steps(repair.steps, ("repair",), scope, tools)
    if procedure.answer is not None:
        yield from _check_text(read_template, procedure.answer, ("answer",), scope.variables)
    elif not any(step.ask for step in procedure.steps):
        yield (), "needs an 'ask' step or an 'answer', or nothing would be answered", None


def _check_steps(steps: Sequence[Step], path: Path, scope: _Scope, tools: ToolNames) -> Iterator[Problem]:
    for index, step in enumerate(steps):
        here = (*path, "steps", index)
        if step.when is not None:
            yield from _check_text(read_condition, step.when, (*here, "when"), scope.variables)
        for key in ("ask", "system"):
            text = getattr(step, key)
            if text is not None:
                yield from _check_text(read_template, text, (*here, key), scope.variables)
        for name, text in step.args.items():
            yield from _check_text(read_template, text, (*here, "args", name), scope.variables)
        for position, picture in enumerate(step.images or ()):
            if picture not in scope.pictures:
                hint = _first(picture, sorted(scope.pictures))
                message = f"no picture {picture!r} here; there is {_listing(scope.pictures)}"
                yield (*here, "images", position), message, hint
        if step.tool is not None and normalise(step.tool) not in tools.known:
            yield (*here, "tool"), f"no tool {step.tool!r}", _first(step.tool, tools.shown)
        if step.save is not None:
            yield from _check_save(step.save, here)
            scope.variables.add(step.save)
            if step.tool is not None and step.save not in GIVEN_VARIABLES:
                scope.pictures.add(step.save)


def _check_save(name: str, here: Path) -> Iterator[Problem]:
    taken = (*GIVEN_VARIABLES, *GIVEN_PICTURES)
    if not name.isascii() or not name.isidentifier() or name in _RESERVED:
        yield (*here, "save"), f"{name!r} is not a plain name (letters, digits, '_')", None
    elif name in taken:
        yield (*here, "save"), f"{name!r} is given already; choose another name", None


def _check_text(read: Callable[[str], Reading], text: str, path: Path, known: Collection[str]) -> Iterator[Problem]:
    reading = read(text)
    if reading.fault is None and not reading.attributes and reading.variables.issubset(known):
        return
    if reading.fault is not None:
        yield path, reading.fault, None
    for variable in sorted(reading.variables - set(known)):
        message = f"nothing is saved as {variable!r} before this; known here: {_listing(known)}"
        yield path, message, _first(variable, sorted(known))
    for variable, attribute in sorted(reading.attributes):
        given = () if variable in GIVEN_VARIABLES else SAVED_ATTRIBUTES
        if variable in known and attribute not in given and not hasattr(str, attribute):
            listing = f" (there is {_listing(given)})" if given else ""
            yield path, f"{variable!r} has no {attribute!r}{listing}", _first(attribute, given)


def _listing(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _first(name: str, names: Iterable[str]) -> str | None:
    return next(iter(nearest(name, names, 1)), None)
