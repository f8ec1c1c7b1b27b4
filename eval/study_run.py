"""Running the members of a study, one after another.

The one idea: a member that fails does not take the others with it. Each has its own resumable folder; the summary is
made anew from whatever results stand there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eval.phases import StartPhase, silent
from eval.pools import Pools
from eval.run import evaluate
from eval.study import Member, Study
from eval.study_table import Line, lines_of, write_summary
from eval.variants import samples_of, variants
from registry.errors import UserFault
from registry.registry import Registry


@dataclass(frozen=True)
class Planned:
    """What a member is going to do. ``episodes``: of each variant; ``None`` where the number of rows is not known
    beforehand. ``written``: lines of its journal."""

    member: Member
    pairs: tuple[int, int]
    """Experts and Level-1 skills of its registry."""
    episodes: dict[str, int | None]
    validation_calls: int | None
    """Of the matrix and of experts without a skill; 0 where nothing is chosen on validation rows."""
    written: int

    @property
    def total(self) -> int | None:
        known = [count for count in self.episodes.values() if count is not None]
        return sum(known) if len(known) == len(self.episodes) else None


@dataclass
class Ran:
    """How a study went: ``lines`` of its table, members left out and members that failed, with the reason."""

    lines: list[Line] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    errors: int = 0
    """Trajectories that the infrastructure ended."""
    summary: Path | None = None


def plan(study: Study, limit: int | None = None) -> Iterator[Planned]:
    """What would run; nothing is run. Raises UserFault for a registry or a name that does not hold."""
    for member in study.members:
        registry = Registry.load(*member.registry)
        Pools(member.config, registry)
        config = member.config
        definition = config.definition()
        wanted = config.rows.test
        if wanted is None and definition is not None and definition.rows is not None:
            wanted = definition.rows - (0 if definition.generator else config.rows.validation)
        counts = [wanted, config.rows.test_unseen]
        rows = None if wanted is None else sum(_at_most(count or 0, limit) for count in counts)
        pairs = (len(registry.experts), len(registry.skills))
        alone = pairs[0] * config.needs_plain + pairs[0] * pairs[1] * config.needs_matrix
        yield Planned(
            member,
            pairs,
            {one.key: None if rows is None else rows * samples_of(config, one) for one in variants(config)},
            alone * _at_most(config.rows.validation, limit),
            _lines(member.folder / "journal.jsonl"),
        )


def run_study(
    study: Study,
    *,
    limit: int | None = None,
    retry_errors: bool = False,
    start_phase: StartPhase = silent,
    on_member: Callable[[Member], None] = lambda member: None,
    warn: Callable[[str], None] = lambda line: None,
) -> Ran:
    """Run every member; what the journals hold is not run again. Writes ``study.json`` and ``study.md`` after each."""
    ran = Ran()
    for member in study.members:
        if member.optional and member.missing:
            ran.left_out[member.name] = ", ".join(member.missing)
            continue
        on_member(member)
        try:
            registry = Registry.load(*member.registry)
            done = asyncio.run(
                evaluate(
                    member.config,
                    registry,
                    member.folder,
                    limit=limit,
                    retry_errors=retry_errors,
                    start_phase=start_phase,
                    warn=warn,
                )
            )
        except UserFault as fault:
            ran.failed[member.name] = str(fault)
            continue
        ran.errors += int(done.results["errors"])
        ran.lines += lines_of(member.name, done.results)
        ran.summary = write_summary(study, ran.lines, ran.left_out, ran.failed)
    ran.summary = write_summary(study, ran.lines, ran.left_out, ran.failed)
    return ran


def _at_most(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0
