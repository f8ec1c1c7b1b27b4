"""Into how many shards an evaluation is divided, and where each is kept.

The one idea: the folders say it. A run that was begun in four shards goes on in four, on however many nodes there are
now; only a run without any is divided anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from eval.shard import MOST, Shard
from registry.errors import UserFault


@dataclass(frozen=True)
class Plan:
    """The shards of the run folder ``run``."""

    run: Path
    shards: tuple[Shard, ...]

    def folder(self, shard: Shard) -> Path:
        return self.run.with_name(self.run.name + shard.folder_suffix)

    @property
    def folders(self) -> list[Path]:
        return [self.folder(shard) for shard in self.shards]


def begun(run: Path) -> set[int]:
    """The numbers of shards in which ``run`` has been begun; normally none or one."""
    pattern = re.compile(re.escape(run.name) + r"-shard-[0-9]+-of-([0-9]+)")
    if not run.parent.is_dir():
        return set()
    found = (pattern.fullmatch(path.name) for path in run.parent.iterdir())
    return {int(match[1]) for match in found if match is not None}


def make_plan(run: Path, asked: int | None, nodes: int) -> Plan:
    """Divide ``run``: as it was begun, else into ``asked`` shards, else one for each of ``nodes``.

    Raises:
        UserFault: it was begun in another number of shards than asked for, or in several, or there can't be so many.
    """
    known = begun(run)
    listed = ", ".join(map(str, sorted(known)))
    if known and asked is not None and asked not in known:
        raise UserFault(
            f"this run was begun in {listed} shards, not in {asked}",
            where=str(run.with_name(f"{run.name}-shard-*")),
            fix="leave --shards out to go on, or give another folder with --run",
        )
    if len(known) > 1 and asked is None:
        raise UserFault(
            f"this run was begun more than once, in {listed} shards",
            where=str(run.with_name(f"{run.name}-shard-*")),
            fix="say with --shards which one goes on",
        )
    count = asked if asked is not None else next(iter(known), nodes)
    if not 1 <= count <= MOST:
        raise UserFault(f"a run can't have {count} shards", where="--shards", fix=f"give a number from 1 to {MOST}")
    return Plan(run, tuple(Shard(index, count) for index in range(1, count + 1)))
