"""Faults of the user, as sentences: what is wrong, where, and what to do.

The one idea: code raises `UserFault` exactly when a person can mend the cause (a wrong name, a broken
file); the command line prints it without a traceback and ends with exit code 2. Anything else that escapes
is a fault of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class UserFault(Exception):
    """Something the user can mend.

    `what` says what is wrong, `where` names the place (file:line, row, option), `fix` says what to do.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process borders (Ray); the default recipe would lose the keyword arguments.
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


def _rebuild(kind: type[UserFault], args: tuple[object, ...], state: dict[str, object]) -> UserFault:
    fault = kind.__new__(kind, *args)
    fault.args = args
    fault.__dict__.update(state)
    return fault


@dataclass(frozen=True)
class Fault:
    """One fault in a registry file. `line` counts from 1; None when the fault is the whole file's."""

    message: str
    file: str
    line: int | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        hint = f" (did you mean {self.hint!r}?)" if self.hint else ""
        return f"{place}: {self.message}{hint}"


class RegistryFault(UserFault):
    """All faults of the given registry files at once, in the order of the files and their lines."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        count = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        listing = "\n".join(f"  {fault}" for fault in self.faults)
        super().__init__(f"{count} in the registry:\n{listing}")


class UnknownName(UserFault, KeyError):
    """A name that the registry does not hold; `suggestions` are the nearest names, best first, maybe none."""

    def __init__(self, kind: str, name: str, suggestions: Sequence[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.suggestions: tuple[str, ...] = tuple(suggestions)
        nearest = f"did you mean {' or '.join(map(repr, self.suggestions))}?" if suggestions else None
        super().__init__(f"unknown {kind} {name!r}", fix=nearest)
