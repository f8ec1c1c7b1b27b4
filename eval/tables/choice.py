"""Which arms of which runs fill which row.

The one idea: runs of different benchmarks stand in one row where the same thing answered: an arm of the same name
and settings. Runs of one benchmark share a cell as repetitions where only their seed (and what was trained from it)
differs; where that cannot be told, they get rows of their own, named after their folders. ``--row`` decides itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.tables.escape import short
from eval.tables.measured import FILE, Measured, read_run
from eval.tables.paper import Paper
from registry.errors import UserFault
from registry.names import nearest

MOST_RUNS = 2000
REFERENCES = ("oracle", "family_pair")
"""Kinds that look at the answer, or at the row's family: not competitors."""
_BY_FOLDER = ("maestro_star", "skills_", "without_")
_UNTRAINED = ("before", "base", "untrained")
"""Names that configurations give the policy before RL."""
_WITHOUT = {"skills": "without_skills", "experts": "without_models", "both": "without_both"}


@dataclass(frozen=True)
class Asked:
    """A row asked for by ``--row NAME=RUN[:ARM]``."""

    name: str
    run: Path
    arm: str | None

    @classmethod
    def parse(cls, text: str) -> Asked:
        """Raises UserFault for a text of another shape."""
        name, equals, place = _split(text)
        if not equals or not name.strip() or not place.strip():
            raise UserFault(f"--row {text!r} is not NAME=RUN[:ARM]", fix="--row 'Maestro-4B=runs/chartqa:after'")
        if Path(place).is_dir():
            return cls(name.strip(), Path(place), None)
        run, colon, arm = place.rpartition(":")
        return cls(name.strip(), Path(run if colon else place), (arm or None) if colon else None)


def _split(text: str) -> tuple[str, str, str]:
    """At the last "=" behind which a folder stands: names ("N = 2") and folders may hold one."""
    for index in reversed([index for index, mark in enumerate(text) if mark == "="]):
        place = text[index + 1 :]
        run, colon, _ = place.rpartition(":")
        if Path(place).is_dir() or (colon and Path(run).is_dir()):
            return text[:index], "=", place
    return text.rpartition("=")


@dataclass(frozen=True)
class OwnRow:
    """A measured row: for each benchmark the runs that fill its cells."""

    label: str
    role: str | None
    """The paper's row that it stands for."""
    runs: Mapping[str, Sequence[Measured]]
    reference: bool = False
    policy: bool = True
    """Whether a policy answers, not a rule."""


def own_rows(paper: Paper, runs: Sequence[Path], asked: Sequence[Asked] = (), arms: Sequence[str] = ()) -> list[OwnRow]:
    """The measured rows: first those asked for, then one for every other arm of ``runs``.

    Args:
        arms: only these arms of ``runs``; all if left out.

    Raises:
        UserFault: no run at all, a folder without results, an arm that no run holds (the nearest are told).
    """
    runs = [folder for given in runs for folder in _expanded(given)]
    folders = _different([*runs, *(one.run for one in asked)])
    if not folders:
        raise UserFault("no run is given", fix="give the folders that `maestro evaluate` wrote")
    if len(folders) > MOST_RUNS:
        raise UserFault(f"{len(folders)} runs are given, more than {MOST_RUNS}")
    read = {folder: read_run(folder) for folder in folders}
    rows, used = [], set()
    for name, wanted in _by_name(asked).items():
        found = _unique([_arm_of(read[one.run.resolve()], one.arm) for one in wanted])
        used |= {(one.run, one.arm) for one in found}
        rows.append(_row(paper, name, found, paper.row_of(name)))
    free = [one for folder in _different(runs) for one in read[folder] if (one.run, one.arm) not in used]
    if arms:
        free = [one for name in arms for one in _named(free, name)]
    else:
        free = [one for one in free if one.headline]
    by_arm: dict[tuple[str, str | None], list[Measured]] = defaultdict(list)
    for one in _unique(free):
        by_arm[one.arm, _role_of_folder(paper, one)].append(one)
    for (arm, by_folder), found in by_arm.items():
        systems = _systems(found)
        roles = [by_folder or _role(paper, one[0]) for one in systems]
        for one, role in zip(systems, roles, strict=True):
            apart = len(systems) > 1 or by_folder is not None
            label = arm.replace("_", " ") + (f" ({_folders(paper, one, by_folder)})" if apart else "")
            rows.append(_row(paper, label, one, role if roles.count(role) == 1 else None))
    return rows


def _row(paper: Paper, label: str, found: Iterable[Measured], role: str | None) -> OwnRow:
    runs: dict[str, list[Measured]] = defaultdict(list)
    for one in found:
        runs[one.benchmark].append(one)
    every = [one for members in runs.values() for one in members]
    reference = any(one.settings.get("kind", one.arm) in REFERENCES for one in every)
    policy = all(one.settings.get("policy") is not None or not one.settings for one in every)
    return OwnRow(short(label), role, dict(runs), reference, policy)


def _systems(found: Sequence[Measured]) -> list[list[Measured]]:
    """Apart by what answers; by checkpoint too where two checkpoints answered one benchmark with one seed."""
    by_system: dict[str, list[Measured]] = defaultdict(list)
    for one in found:
        by_system[one.system].append(one)
    if len(by_system) > 1 and not _overlap(by_system.values()):
        by_system = {"": list(found)}  # every benchmark has its own settings: still one row
    apart = []
    for members in by_system.values():
        seen: dict[tuple[str, int | None], str | None] = {}
        same = all(seen.setdefault((one.benchmark, one.seed), one.checkpoint) == one.checkpoint for one in members)
        if same:
            apart.append(members)
            continue
        by_checkpoint: dict[str | None, list[Measured]] = defaultdict(list)
        for one in members:
            by_checkpoint[one.checkpoint].append(one)
        apart += by_checkpoint.values()
    return apart


def _overlap(groups: Iterable[Sequence[Measured]]) -> bool:
    seen: set[str] = set()
    for members in groups:
        own = {one.benchmark for one in members}
        if own & seen:
            return True
        seen |= own
    return False


def _role(paper: Paper, one: Measured) -> str | None:
    kind, pool = one.settings.get("kind"), one.settings.get("pool")
    without = _WITHOUT.get(str(one.settings.get("without")))
    named = paper.row_of(one.arm) or (paper.row_of(one.model) if one.model else None)
    if without is not None or kind in (None, "policy"):
        skills = pool.get("skills") if isinstance(pool, Mapping) else None
        sized = f"skills_{len(skills)}" if isinstance(skills, list) else None
        return without or (sized if sized in paper.rows else named)
    if kind == "best_expert":
        return "best_model"
    untrained = one.settings.get("policy") in _UNTRAINED
    if kind == "direct" and named is None and untrained:
        return "direct"
    # "direct" of a trained policy is another thing than the paper's row of that name
    return None if named == "direct" and not untrained else named


def _role_of_folder(paper: Paper, one: Measured) -> str | None:
    """What the folder's name, or its parent's, says about a trained policy: which registry, pool or reward."""
    if _role(paper, one) != "maestro":
        return None
    roles = (paper.row_of(name) for name in (_member(one), one.run.parent.name))
    return next((role for role in roles if role is not None and role.startswith(_BY_FOLDER)), None)


def _member(one: Measured) -> str:
    """The run's folder; of a study's `<member>-<benchmark>` the member."""
    return one.run.name.removesuffix(f"-{one.benchmark}")


def _arm_of(found: Sequence[Measured], name: str | None) -> Measured:
    names = [one.arm for one in found]
    wanted = name or ("after" if "after" in names else names[0] if len(names) == 1 else None)
    for one in found:
        if one.arm == wanted:
            return one
    near = nearest(name or "", names)
    fix = f"did you mean {' or '.join(map(repr, near))}?" if name and near else f"there are {', '.join(sorted(names))}"
    what = f"the run holds no arm {name!r}" if name else "the run holds several arms; name one"
    raise UserFault(what, where=str(found[0].run), fix=fix)


def _named(found: Sequence[Measured], name: str) -> list[Measured]:
    kept = [one for one in found if one.arm == name]
    if not kept:
        known = sorted({one.arm for one in found})
        near = nearest(name, known)
        raise UserFault(
            f"no run holds an arm {name!r}",
            fix=f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}",
        )
    return kept


def _by_name(asked: Sequence[Asked]) -> dict[str, list[Asked]]:
    found: dict[str, list[Asked]] = defaultdict(list)
    for one in asked:
        found[one.name].append(one)
    return found


def _different(folders: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(folder.resolve() for folder in folders))


def _unique(found: Iterable[Measured]) -> list[Measured]:
    return list({(one.run, one.arm): one for one in found}.values())


def _expanded(given: Path) -> list[Path]:
    """A study's folder stands for the runs in it."""
    if (given / FILE).exists() or not given.is_dir():
        return [given]
    return sorted(path.parent for path in given.glob(f"*/{FILE}")) or [given]


def _folders(paper: Paper, found: Sequence[Measured], role: str | None) -> str:
    """What tells these runs from others of the same arm: their folders' names, or their parents'."""
    names = list(dict.fromkeys(_member(one) for one in found))
    if role is not None and any(paper.row_of(name) != role for name in names):
        names = list(dict.fromkeys(one.run.parent.name for one in found))
    return names[0] if len(names) == 1 else f"{names[0]}, ... {names[-1]}"
