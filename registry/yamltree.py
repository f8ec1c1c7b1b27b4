"""One strict YAML file as a tree of text with line numbers.

The one idea: the tree is built from parser events, so nothing is ever guessed: scalars keep their
characters, keys are unique, aliases are the same subtree again, and size and depth are bounded before
anything is expanded.

Refused, with the line: repeated keys, keys that are not text, tags such as `!!python/name`, several
documents, merge keys, aliases that grow beyond `MAX_NODES` or refer to themselves, nesting beyond
`MAX_DEPTH`, tabs as indentation, bytes that are not UTF-8 text. A byte order mark is accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from registry.errors import Fault

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 32
MAX_NODES = 200_000

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class Scalar:
    """Text; `plain` when it was written without quotes."""

    line: int
    text: str
    plain: bool
    size: int = 1


@dataclass(slots=True)
class Sequence:
    line: int
    items: list[Node] = field(default_factory=list)
    size: int = 1


@dataclass(slots=True)
class Mapping:
    """Entries in the file's order: key scalar and value."""

    line: int
    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)
    size: int = 1
    key: Scalar | None = None  # the key that waits for its value while the file is being read


Node = Scalar | Sequence | Mapping


class _Stop(Exception):
    """The rest of the file can't be read."""


def read_tree(path: Path, faults: list[Fault]) -> Node | None:
    """Read one file. Faults are appended to `faults`; None when nothing usable is left."""
    text = _read_text(path, faults)
    return None if text is None else parse_tree(text, str(path), faults)


def parse_tree(text: str, name: str, faults: list[Fault]) -> Node | None:
    """The tree of a text, which `name` stands for in the faults; None when nothing usable is left.

    A tree that is given may have faults all the same: of repeated keys the first is kept, tags are passed over.
    """
    builder = _Builder(name, faults)
    try:
        builder.read(text)
    except _Stop:
        return None
    except yaml.MarkedYAMLError as error:
        faults.append(_syntax_fault(error, text, name))
        return None
    except yaml.YAMLError as error:
        faults.append(Fault(f"not readable as YAML: {error}", name, 1))
        return None
    if builder.root is None or (isinstance(builder.root, Scalar) and not builder.root.text):
        faults.append(Fault("the file is empty; expected 'experts:', 'skills:' or 'tools:'", name, 1))
        return None
    return builder.root


def _read_text(path: Path, faults: list[Fault]) -> str | None:
    name = str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        faults.append(Fault(f"can't be read: {error.strerror or error}", name))
        return None
    if len(raw) > MAX_BYTES:
        faults.append(Fault(f"the file is larger than {MAX_BYTES} bytes", name))
        return None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        faults.append(Fault(f"not UTF-8 text (byte 0x{raw[error.start]:02x})", name, line))
        return None
    odd = _NOT_TEXT.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        faults.append(Fault(f"not text: it holds the character U+{ord(odd.group()):04X}", name, line))
        return None
    return text


def _syntax_fault(error: yaml.MarkedYAMLError, text: str, name: str) -> Fault:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Fault(f"not readable as YAML: {error}", name, 1)
    lines = text.splitlines()
    # libyaml's mark may stand one line after the tab that it stumbled over.
    for number in (mark.line, mark.line - 1):
        if 0 <= number < len(lines) and "\t" in re.match(r"\s*", lines[number]).group():  # type: ignore[union-attr]
            return Fault("a tab is used for indentation; use spaces", name, number + 1)
    if "nesting depth" in (error.problem or ""):
        return Fault(f"nested deeper than {MAX_DEPTH} levels", name, mark.line + 1)
    reason = ", ".join(filter(None, (error.context, error.problem)))
    if mark.line >= len(lines):
        return Fault(f"not readable as YAML: {reason} (at the end)", name, max(1, len(lines)))
    return Fault(f"not readable as YAML: {reason} (column {mark.column + 1})", name, mark.line + 1)


class _Builder:
    """Takes parser events and builds the tree without recursion."""

    def __init__(self, file: str, faults: list[Fault]) -> None:
        self.file = file
        self.faults = faults
        self.root: Node | None = None
        self.stack: list[Sequence | Mapping] = []
        self.anchors: dict[str, Node | None] = {}
        self.open_anchors: list[str | None] = []
        self.documents = 0

    def fault(self, message: str, line: int) -> None:
        self.faults.append(Fault(message, self.file, line))

    def stop(self, message: str, line: int) -> _Stop:
        self.fault(message, line)
        return _Stop()

    def read(self, text: str) -> None:
        # Asking the loader itself for events saves the second call for each event that `yaml.parse` makes.
        loader = _Loader(text)
        try:
            event = loader.get_event()
            while not isinstance(event, yaml.StreamEndEvent):
                self.take(event, event.start_mark.line + 1)
                event = loader.get_event()
        finally:
            loader.dispose()

    def take(self, event: yaml.Event, line: int) -> None:
        if isinstance(event, yaml.ScalarEvent):
            if event.tag is not None:
                self.tag_fault(event.tag, line)
            scalar = Scalar(line, event.value, not event.style)
            if event.anchor:
                self.anchors[event.anchor] = scalar
            self.add(scalar, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.close(line)
        elif isinstance(event, yaml.CollectionStartEvent):
            if event.tag is not None:
                self.tag_fault(event.tag, line)
            self.open(event, line)
        elif isinstance(event, yaml.AliasEvent):
            self.add(self.aliased(event.anchor, line), line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self.stop("a second document begins here; one file holds one", line)

    def tag_fault(self, tag: str, line: int) -> None:
        self.fault(f"tags such as {tag!r} are not allowed; write plain text, lists and mappings", line)

    def aliased(self, anchor: str, line: int) -> Node:
        if anchor not in self.anchors:
            raise self.stop(f"the alias '*{anchor}' refers to nothing", line)
        node = self.anchors[anchor]
        if node is None:
            raise self.stop(f"the alias '*{anchor}' refers to itself", line)
        return node

    def open(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise self.stop(f"nested deeper than {MAX_DEPTH} levels", line)
        parent = self.stack[-1] if self.stack else None
        if isinstance(parent, Mapping) and parent.key is None:
            raise self.stop("a key must be text, not a list or mapping", line)
        if event.anchor:
            self.anchors[event.anchor] = None
        self.open_anchors.append(event.anchor)
        self.stack.append(Sequence(line) if isinstance(event, yaml.SequenceStartEvent) else Mapping(line))

    def close(self, line: int) -> None:
        node = self.stack.pop()
        anchor = self.open_anchors.pop()
        if anchor:
            self.anchors[anchor] = node
        self.add(node, line)

    def add(self, node: Node, line: int) -> None:
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        parent.size += node.size
        if parent.size > MAX_NODES:
            raise self.stop(f"more than {MAX_NODES} values, counting each alias in full", line)
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif parent.key is None:
            if not isinstance(node, Scalar):
                raise self.stop("a key must be text, not a list or mapping", line)
            # An alias as a key stands at its own line, not where the text was written first.
            parent.key = node if node.line == line else Scalar(line, node.text, node.plain)
        else:
            key, parent.key = parent.key, None
            self.enter(parent, key, node)

    def enter(self, parent: Mapping, key: Scalar, node: Node) -> None:
        if key.plain and key.text == "<<":
            self.fault("merge keys ('<<') are not read; write the entries out", key.line)
        elif key.text in parent.entries:
            first = parent.entries[key.text][0].line
            self.fault(f"the key {key.text!r} is repeated (first at line {first})", key.line)
        else:
            parent.entries[key.text] = (key, node)
