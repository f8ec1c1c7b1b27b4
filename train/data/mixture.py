"""The chosen rows of all sources, in one seeded order, and what was left out.

The one idea: choosing reads keys alone; pictures are fetched one row at a time while the files are written.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train.data.config import DataConfig
from train.data.row import MixtureRow
from train.data.workspace import Workspace

_SHOWN = 10
Pick = tuple[float, str, int]
"""Place in the mixture's order (0..1), source, key."""


@dataclass
class Mixture:
    """train, validation: what is taken, in order. leaks: rows that an evaluation benchmark holds too; they are not
    among the taken ones. passed_over: rows that show a validation picture, by source. short: sources with too few."""

    train: list[Pick] = field(default_factory=list)
    validation: list[Pick] = field(default_factory=list)
    leaks: list[dict[str, str]] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    short: list[str] = field(default_factory=list)

    def rows(self, work: Workspace, split: str) -> Iterator[MixtureRow]:
        """split: train or validation."""
        for _, source, key in self.train if split == "train" else self.validation:
            yield work.row(source, key, split)

    def refuse_leaks(self, folder: Path) -> None:
        """Raises UserFault, listing the first of them, where there are any."""
        if not self.leaks:
            return
        counts = Counter(f"{leak['source']} in {leak['benchmark']}" for leak in self.leaks)
        listing = "".join(
            f"\n  {leak['row']} = {leak['benchmark_row']}: {leak['kind']} ({leak['detail']})"
            for leak in self.leaks[:_SHOWN]
        )
        rest = f"\n  and {len(self.leaks) - _SHOWN} more" if len(self.leaks) > _SHOWN else ""
        totals = ", ".join(f"{what} {count}" for what, count in counts.most_common())
        raise UserFault(
            f"{len(self.leaks)} rows are held by evaluation benchmarks too ({totals}); nothing was written"
            f"{listing}{rest}",
            where=f"{folder / 'leaks.jsonl'} lists all of them",
            fix="read the right split, or take other rows in their place with --drop-leaks",
        )

    def refuse_short(self, folder: Path) -> None:
        """Raises UserFault where a source has fewer rows than are asked for."""
        if self.short:
            raise UserFault(
                f"too few rows that can be used: {'; '.join(self.short)}",
                where=f"{folder / 'skipped.jsonl'} says why rows were left out",
                fix="lower the `rows` or `validation_rows` of these sources and run it with --restart",
            )


def choose(config: DataConfig, work: Workspace) -> Mixture:
    """Of every source the first rows of its seeded order: validation, then training rows of other pictures."""
    mixture = Mixture()
    ordered = {name: list(work.keys(name)) for name in config.sources}
    held: set[bytes] = set()
    for name, source in config.sources.items():
        chosen = ordered[name][: source.validation_rows]
        held.update(digest for _, _, digests in chosen for digest in digests)
        mixture.validation += _placed(name, [key for key, _, _ in chosen])
    for name, source in config.sources.items():
        taken: list[int] = []
        for key, _, digests in ordered[name][source.validation_rows :]:
            if len(taken) == source.rows:
                break
            if held.intersection(digests):
                mixture.passed_over[name] += 1
            else:
                taken.append(key)
        mixture.train += _placed(name, taken)
        # Beyond the last row that is taken no leak would have come into the mixture.
        last = taken[-1] if len(taken) == source.rows else (1 << 63) - 1
        mixture.leaks += work.leaks(name, last)
        if len(taken) < source.rows:
            mixture.short.append(f"{name}: {len(taken)} of {source.rows} training rows")
    mixture.train.sort()
    mixture.validation.sort()
    return mixture


def _placed(source: str, keys: list[int]) -> list[Pick]:
    """Sources are interleaved evenly: rank by rank, each in its own seeded order."""
    return [((rank + 0.5) / len(keys), source, key) for rank, key in enumerate(keys)]


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> int:
    """JSON lines; the file appears under its name when it is complete."""

    def write(partial: Path) -> int:
        with partial.open("w", encoding="utf-8") as stream:
            return sum(bool(stream.write(json.dumps(one, ensure_ascii=False) + "\n")) for one in records)

    return _whole(path, write)


def write_summary(path: Path, summary: dict[str, Any]) -> None:
    """One JSON object."""
    text = json.dumps(summary, ensure_ascii=False, indent=1) + "\n"
    _whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def _whole(path: Path, write: Callable[[Path], int]) -> int:
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        count = write(partial)
        os.replace(partial, path)
    except OSError as fault:
        raise UserFault(f"cannot write {path}: {fault}", fix="free some space or choose another folder") from fault
    return count
