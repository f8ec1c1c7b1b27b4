"""What became of a benchmark's rows: how many were read, and why which were left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Literal

from registry.errors import UserFault

Reason = Literal[
    "no image", "bad image", "no question", "no gold answer", "bad gold answer", "bad options", "duplicate id",
    "gold answer does not fit the rule", "cannot be scored",
    "too few images", "unreadable",
]  # fmt: skip
OnFault = Literal["skip", "fail"]
_EXAMPLES = 3  # kept of each reason
_EARLY = 20  # rows before the share of faulty ones is looked at


class RowFault(UserFault):
    """A row that can't be asked or scored. `reason` groups faults of a kind."""

    def __init__(self, reason: Reason, what: str, *, where: str, fix: str | None = None) -> None:
        super().__init__(f"{reason}: {what}" if what else reason, where=where, fix=fix)
        self.reason: Reason = reason


@dataclass
class Tally:
    """Counts while rows are read. `seen` = `kept` + `left_out` (by `where` in the YAML) + faulty ones."""

    benchmark: str
    """Its name, or its file."""
    data_root: Path | None = None
    """The local copy, for messages."""
    seen: int = 0
    kept: int = 0
    left_out: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)
    examples: dict[Reason, list[str]] = field(default_factory=dict)

    @property
    def faulty(self) -> int:
        return sum(self.reasons.values())

    def note(self, fault: RowFault) -> None:
        self.reasons[fault.reason] += 1
        examples = self.examples.setdefault(fault.reason, [])
        if len(examples) < _EXAMPLES:
            examples.append(f"{fault.where}: {fault.what}")

    def summary(self) -> str:
        """ "98 of 100 rows; skipped 2: no image 1, duplicate id 1"."""
        text = f"{self.kept} of {self.seen} rows"
        if self.left_out:
            text += f"; {self.left_out} not asked for"
        if self.faulty:
            text += f"; skipped {self.faulty}: {', '.join(f'{reason} {n}' for reason, n in self.reasons.most_common())}"
        return text

    def check(self, most_faulty: float, *, finished: bool) -> None:
        """Raises UserFault when more than that share of the rows is faulty, or none at all is left at the end."""
        early = not finished and self.seen < _EARLY
        if not early and self.faulty and self.faulty > most_faulty * self.seen:
            self._give_up(f"more than {100 * most_faulty:g} % of the rows are faulty")
        if finished and not self.kept:
            self._give_up("no row can be used" if self.seen else "there are no rows")

    def _give_up(self, what: str) -> None:
        copy = "" if self.data_root is None else f" --data-root {quote(str(self.data_root))}"
        listing = "".join(f"\n  {example}" for examples in self.examples.values() for example in examples[:1])
        raise UserFault(
            f"{what} ({self.summary()}){listing}",
            where=f"benchmark {self.benchmark}",
            fix=f"`maestro benchmarks check {quote(self.benchmark)}{copy}` lists every faulty row",
        )
