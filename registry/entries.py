"""One named entry of a registry file, and the lines of its fields.

The one idea: what was written is kept as it is, and a line is looked up only when a fault needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from registry.errors import Fault
from registry.findings import Path as FieldPath
from registry.findings import dotted
from registry.yamltree import Mapping, Node, Sequence


@dataclass
class Entry:
    """One named entry of a file.

    `body` is what was written, for the lines of faults. `part` is None when unreadable; in a `faulty` skill it
    is what was salvaged.
    """

    kind: str
    name: str
    file: str
    line: int
    body: Node
    replace: bool = False
    part: Any = None
    faulty: bool = False

    def fault(self, path: FieldPath, message: str, hint: str | None = None) -> Fault:
        field_name = dotted(self.readable(path))
        where = f"{self.kind} {self.name!r}" + (f", {field_name}" if field_name else "")
        return Fault(f"{where}: {message}", self.file, line_at(self.body, path, self.line), hint)

    def readable(self, path: FieldPath) -> FieldPath:
        """The path with subskills by name, and without the implied `name`."""
        steps = list(path)
        if self.kind == "skill" and path[:1] == ("subskills",) and len(path) > 1 and isinstance(self.body, Mapping):
            subskills = self.body.entries["subskills"][1]
            if isinstance(subskills, Mapping) and isinstance(path[1], int):
                steps[1] = list(subskills.entries)[path[1]]
        return tuple(steps[:-1] if path[-1:] == ("name",) else steps)


def line_at(node: Node, path: FieldPath, line: int) -> int:
    """The line of the field at `path` below `node`, which stands at `line`; of what surrounds it where the field
    was not written."""
    for step in path:
        if isinstance(node, Sequence) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
            line = node.line
        elif isinstance(node, Mapping):
            # Subskills are written as a mapping and read as a list.
            keys = list(node.entries) if isinstance(step, int) else ()
            name = keys[step] if isinstance(step, int) and step < len(keys) else step
            if name not in node.entries:
                return line
            key, node = node.entries[name]  # type: ignore[index]
            line = key.line
        else:
            return line
    return line
