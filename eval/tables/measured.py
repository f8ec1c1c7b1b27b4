"""What a finished run folder measured, one record for each arm and temperature: ``results.json`` with what
``eval.json`` says about how it was made.

The one idea: results.json is data from a file, so every part of it is checked where it is read; eval.json only adds
(the arm's kind, its checkpoint, how many trajectories there should be), and a folder without it is read too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.benchmarks.catalogue import find_benchmark
from eval.config import TEST, EvalConfig
from eval.results import HEADLINE
from eval.tables.escape import short
from eval.variants import samples_of, variants
from registry.errors import UserFault

FILE = "results.json"
MOST_BYTES = 256 << 20
_DETAIL = "_detail"
_LONGEST = 100  # of a benchmark's name


@dataclass(frozen=True)
class Measured:
    """One arm at one temperature on one benchmark."""

    run: Path
    benchmark: str
    title: str
    seed: int | None
    arm: str
    """As in the journal: "after", "after/greedy"."""
    entry: Mapping[str, Any]
    """The arm's numbers in results.json."""
    settings: Mapping[str, Any]
    """The arm in the run's configuration; empty where eval.json cannot be read."""
    model: str | None
    """The name that a served policy has on its server."""
    checkpoint: str | None
    registry: str | None
    complete: bool
    """No error, and every trajectory there."""
    whole: int | None
    """How many rows the benchmark has, where its file says so."""

    @property
    def headline(self) -> bool:
        return "/" not in self.arm

    @property
    def n(self) -> int:
        """Questions with a valid trajectory."""
        return _count(self.entry, "n")

    @property
    def errors(self) -> int:
        return _count(self.entry, "errors")

    @property
    def cached(self) -> bool:
        """Whether a call cache answered some calls."""
        share = self.entry.get("cached_share")
        return isinstance(share, int | float) and share > 0

    @property
    def system(self) -> str:
        """What answers, apart from seed and checkpoint: runs that differ in it are never put into one cell."""
        kind = self.settings.get("kind")
        own = {key: value for key, value in self.settings.items() if key not in ("policy", "temperatures")}
        return json.dumps([own, self.model, None if kind == "direct" else self.registry], sort_keys=True)


def read_run(folder: Path) -> list[Measured]:
    """Every arm of a run on its test split. Raises UserFault where the folder holds no results that can be read."""
    results = _load(folder / FILE, needed=True)
    made = _load(folder / "eval.json", needed=False)
    config, versions = _config(made.get("config")), _table(made.get("versions"))
    raw = _table(made.get("config"))
    name = results.get("benchmark")
    if not isinstance(name, str) or not name.strip():
        raise _broken(folder, "it names no benchmark")
    benchmark, title, whole = _benchmark(name)
    found = []
    for arm, entry in _arms(folder, results):
        settings = _table(_table(raw.get("arms")).get(arm.split("/")[0]))
        policy = settings.get("policy")
        source = _table(_table(raw.get("policies")).get(policy)) if isinstance(policy, str) else {}
        seed = results.get("seed")
        found.append(
            Measured(
                run=folder,
                benchmark=benchmark,
                title=short(title or _text(results.get("title")) or name),
                seed=seed if isinstance(seed, int) else None,
                arm=arm,
                entry=entry,
                settings=settings,
                model=_text(source.get("model")),
                checkpoint=_text(versions.get(f"policy {policy}")),
                registry=_text(versions.get("registry")),
                complete=_complete(results, arm, entry, config),
                whole=whole,
            )
        )
    if not found:
        raise _broken(folder, "it holds no arm")
    return found


def _arms(folder: Path, results: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    entries = {name: results.get(name) for name in reversed(HEADLINE)} | dict(_table(results.get("baselines")))
    for name, entry in entries.items():
        if entry is None:
            continue
        if not isinstance(entry, Mapping):
            raise _broken(folder, f"the arm {name!r:.60} is no table of numbers")
        yield name, entry
        for key, detail in entry.items():
            if key.endswith(_DETAIL) and isinstance(detail, Mapping):
                yield f"{name}/{key.removesuffix(_DETAIL)}", detail


def _complete(results: Mapping[str, Any], arm: str, entry: Mapping[str, Any], config: EvalConfig | None) -> bool:
    if _count(entry, "errors"):
        return False
    rows = _table(results.get("rows")).get(TEST)
    variant = None if config is None else next((one for one in variants(config) if one.key == arm), None)
    if config is None or variant is None or not isinstance(rows, int):
        return results.get("status") == "complete"
    return _count(entry, "trajectories") >= rows * samples_of(config, variant)


def _benchmark(name: str) -> tuple[str, str | None, int | None]:
    """Name, title and number of rows of a shipped benchmark; of others the name as it is."""
    if "/" in name or Path(name).suffix or len(name) > _LONGEST:
        return name, None, None
    try:
        known = find_benchmark(name)
    except UserFault:
        return name, None, None
    return known.name, known.title, known.rows


def _load(path: Path, *, needed: bool) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _broken(path.parent, f"{path.name} is larger than {MOST_BYTES >> 20} MiB")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if not needed:
            return {}
        raise UserFault(
            "this folder holds no results that can be read",
            where=str(path),
            fix="give folders that `maestro evaluate` wrote; `maestro evaluate report RUN` makes their results anew",
        ) from error
    if isinstance(found, Mapping):
        return found
    if needed:
        raise _broken(path.parent, "it is no table")
    return {}


def _config(raw: Any) -> EvalConfig | None:
    try:
        return EvalConfig.model_validate(raw)
    except (ValueError, UserFault):  # written by another version
        return None


def _broken(folder: Path, why: str) -> UserFault:
    return UserFault(f"the results cannot be read: {why}", where=str(folder / FILE))


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _count(entry: Mapping[str, Any], key: str) -> int:
    value = entry.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
