"""What a tool gives back: words for a prompt, data for a program, pictures for the next step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from experts.images import Picture


@dataclass(frozen=True)
class ToolResult:
    """text: for prompts. data: anything that JSON holds. pictures: what the tool cut out or drew, first one
    first. notes: what was done differently than asked, for the delegation's record."""

    text: str
    data: Any = None
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def json(self) -> str:
        """`data` on one line, keys in a fixed order."""
        return json.dumps(self.data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@runtime_checkable
class PythonTool(Protocol):
    """An embedded tool: made once as `Class(**options)`, called from several threads at once. One that has an
    attribute `needs_picture` of False is given None where there is no picture; others are not run then."""

    def run(self, picture: Picture, **args: str) -> ToolResult:
        """Work on one picture; arguments come as text from the procedure's templates."""
        ...
