"""`Check`: what one look before a run found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from registry.errors import UserFault


class NotYet(Exception):
    """What a check looks at is not there before the run starts. The message says why."""


@dataclass(frozen=True)
class Check:
    """One line of the preflight. what: what was found; where, fix: of a fault, the place and what to do."""

    name: str
    state: Literal["ok", "fault", "skipped"]
    what: str
    where: str | None = None
    fix: str | None = None

    @staticmethod
    def fault(name: str, found: UserFault) -> Check:
        """A fault, in one line each for what, where and fix."""
        return Check(name, "fault", _line(found.what), _line(found.where), _line(found.fix))

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def line(self) -> str:
        """All of it in one line."""
        words = [self.name, self.state, self.what]
        words += [f"{name}: {text}" for name, text in (("where", self.where), ("fix", self.fix)) if text]
        return "  ".join(words)


def _line(text: str | None) -> str:
    return " ".join((text or "").split())
