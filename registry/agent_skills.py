"""Agent Skills (folders with a SKILL.md) as Level-2 procedures under one Level-1 skill.

The one idea: a skill's Markdown is another person's text. It becomes the system prompt of an `ask` step and
nothing else: template syntax in it is escaped, tags and markers that would act in a prompt are replaced by
look-alikes, its size is bounded, and what else lies in the folder (scripts above all) is named in a comment
and never opened. One document is one subskill or one refusal with its reason; the rest goes on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import ValidationError

from registry.findings import dotted, explain
from registry.front_matter import Document, NotASkill, read_document
from registry.names import name_fault, normalise
from registry.schema import Subskill
from registry.skill_folders import Found, read_text
from registry.yamltree import MAX_BYTES

MAX_DESCRIPTION = 1024  # characters, the limit of the Agent Skills format
MAX_KEYWORDS = 24
_ROOM = MAX_BYTES - 64 * 1024  # bytes of one registry file, less its head
_NAMED_FILES = 12
_NOT_IN_NAMES = re.compile(r"[@:<>/\\\s]+")
_STOP_WORDS = frozenset(
    ("and", "for", "from", "the", "use", "using", "with", "when", "skill", "skills", "this", "that", "your", "into")
)
_PREAMBLE = """\
Follow these instructions as far as they help to answer the user's question about the image. Scripts, files and tools
that they mention are not at hand: don't call them and don't ask for them. End with the answer itself.

"""
_CUT = "\n\n[The rest of the instructions is left out.]"

Neutralise = Callable[[str], str]


@dataclass(frozen=True)
class Message:
    """What is to be told about one document; `refused` when nothing of it was imported."""

    path: str
    text: str
    line: int | None = None
    refused: bool = False

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{'refused' if self.refused else 'note'}: {printable(place)}: {printable(self.text)}"


@dataclass(frozen=True)
class Imported:
    """One subskill and its YAML, unindented."""

    subskill: Subskill
    yaml: str


class Importer:
    """Turns documents into subskills that go together: names are unique, and all of them fit one file.

    `neutralise` makes tags and chat markers harmless; `max_chars` bounds the instructions of each.
    """

    def __init__(self, neutralise: Neutralise, max_chars: int) -> None:
        self._neutralise = neutralise
        self._max_chars = max_chars
        self._owners: dict[str, str] = {}
        self._room = _ROOM

    def take(self, found: Found, messages: list[Message]) -> Imported | None:
        """The document's subskill; None after a refusal. What there is to tell is added to `messages`."""
        place = str(found.path)
        notes: list[str] = []
        try:
            made = self._make(found, notes)
        except NotASkill as refusal:
            messages.append(Message(place, str(refusal), refusal.line, refused=True))
            return None
        messages.extend(Message(place, note) for note in notes)
        return made

    def _make(self, found: Found, notes: list[str]) -> Imported:
        document = read_document(read_text(found.path))
        notes.extend(document.notes)
        name = self._name(document, found.path, notes)
        if not document.description:
            raise NotASkill("has no 'description' in its front matter, so nothing would say when to choose it")
        if not document.body:
            raise NotASkill("has no instructions after its front matter")
        content = {
            "name": name,
            "description": self._description(document.description, notes),
            "keywords": [self._neutralise(word) for word in _keywords(name, document)],
            "procedure": {"steps": [{"system": self._system(document.body, notes), "ask": "{{ question }}"}]},
        }
        try:
            subskill = Subskill.model_validate(content)
        except ValidationError as error:
            reasons = [f"{dotted(path)}: {message}" for path, message, _ in explain(error, Subskill)]
            raise NotASkill("; ".join(reasons)) from None
        if found.others:
            notes.append(f"the folder also holds {_listing(found.others)}; none of it is read or run")
        text = _as_yaml(name, content, found)
        size = len(text.encode()) + 8 * text.count("\n")  # it will be indented
        if size > self._room:
            raise NotASkill(f"there is no room for it: a registry file holds {MAX_BYTES} bytes; import it separately")
        self._room -= size
        self._owners[normalise(name)] = str(found.path)
        return Imported(subskill, text)

    def _name(self, document: Document, path: Path, notes: list[str]) -> str:
        given = document.name or path.absolute().parent.name
        name = plain_name(self._neutralise(given))
        fault = name_fault(name)
        if fault is not None:
            raise NotASkill(fault)
        owner = self._owners.get(normalise(name))
        if owner is not None:
            raise NotASkill(f"the name {name!r} already stands for {owner}; rename one, or import them separately")
        if not document.name:
            notes.append(f"has no 'name'; it is called {name!r} after its folder")
        elif name != given:
            notes.append(f"the name {given!r} is written {name!r} here")
        return name

    def _description(self, text: str, notes: list[str]) -> str:
        harmless = self._neutralise(text)
        if len(harmless) > MAX_DESCRIPTION:
            notes.append(f"the description is cut to {MAX_DESCRIPTION} of {len(harmless)} characters")
            harmless = harmless[: MAX_DESCRIPTION - 1].rstrip() + "…"
        return harmless

    def _system(self, body: str, notes: list[str]) -> str:
        if len(body) > self._max_chars:
            kept = _cut(body, self._max_chars)
            notes.append(f"the instructions are cut to {len(kept)} of {len(body)} characters")
            body = kept + _CUT
        harmless = self._neutralise(body)
        if harmless != body:
            notes.append("tags and markers that would act in a prompt are replaced by look-alikes")
        return _PREAMBLE + literal(harmless)


def literal(text: str) -> str:
    """A Jinja2 template that renders to exactly `text`, whatever template syntax it holds."""
    return re.sub(r"\{(?=[{%#])", "{{ '{' }}", text)


def plain_name(given: str) -> str:
    """`given` without what the protocol uses (`@`, `:`, `<`, `>`), slashes, spaces and invisible characters."""
    text = "".join(c for c in unicodedata.normalize("NFKC", given) if unicodedata.category(c)[0] != "C" or c.isspace())
    return _NOT_IN_NAMES.sub("_", text).strip("_-. ")


def printable(text: str) -> str:
    """One line that can't move a terminal's cursor."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _keywords(name: str, document: Document) -> list[str]:
    """The name as words, each of its words that says something, and the front matter's own keywords."""
    words = [word for word in re.split(r"[\W_]+", name) if len(word) > 2 and word.lower() not in _STOP_WORDS]
    phrase = " ".join(re.split(r"[\W_]+", name)).strip()
    every = dict.fromkeys([phrase, *words, *document.keywords])
    return [word[:100] for word in every if word.strip()][:MAX_KEYWORDS]


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters, up to the end of a paragraph or line where one is near."""
    head = text[:limit]
    for border in ("\n\n", "\n", " "):
        at = head.rfind(border)
        if at >= limit * 3 // 4:
            return head[:at].rstrip()
    return head


def _listing(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(printable, names[:_NAMED_FILES]))
    return shown + (f" and {len(names) - _NAMED_FILES} more" if len(names) > _NAMED_FILES else "")


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # pyright: ignore[reportGeneralTypeIssues]
    pass


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def _as_yaml(name: str, content: dict[str, object], found: Found) -> str:
    body = {key: value for key, value in content.items() if key != "name"}
    text = yaml.dump({name: body}, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1_000_000)
    comment = f"# From {printable(str(found.path))}."
    if found.others:
        comment += f" Not read, not run: {_listing(found.others)}."
    return f"{comment}\n{text}"


def registry_text(skill: str, description: str, imported: list[Imported], routing: str) -> str:
    """The registry file: one Level-1 skill that holds all of `imported`."""
    head = yaml.dump({skill: {"description": description, "routing": routing}}, Dumper=_Dumper, allow_unicode=True,
                     sort_keys=False, width=1_000_000)  # fmt: skip
    lines = ["# Made by `maestro registry import` from Agent Skills; see docs/registry.md.", "skills:"]
    lines += [f"  {line}" for line in head.rstrip("\n").split("\n")]
    lines.append("    subskills:")
    for one in imported:
        lines += [f"      {line}" if line else "" for line in one.yaml.rstrip("\n").split("\n")]
    return "\n".join(lines) + "\n"
