"""From a data config to rows that can be read: benchmark YAMLs, local copies and the hub, as `train.data` takes them.

The one idea: training code knows nothing of benchmarks; here their readers are opened with the split, the copy and the
limits of each source. Pictures stay encoded until a row is wanted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.benchmarks.catalogue import find_benchmark, load_all, load_benchmark
from eval.benchmarks.fields import Record, is_there, read_field
from eval.benchmarks.item import Item
from eval.benchmarks.pictures import Pictures
from eval.benchmarks.reader import Reading, outcomes
from eval.benchmarks.spec import Benchmark, Hub
from eval.benchmarks.tally import Tally
from experts.data_url import decode_data_url
from experts.image_files import read_image_file
from experts.images import ImageLimits, Picture, load_picture
from registry.errors import UserFault
from registry.names import nearest
from rewards.benchmarks import rule_name
from train.data.config import DataConfig, Source
from train.data.picture import MEASURED
from train.data.row import MixtureRow, Read, Skipped

_MAX_BYTES = ImageLimits().max_bytes


@dataclass(frozen=True)
class Specs:
    """The YAML behind every source and every benchmark of the leak check, and where their copies lie."""

    sources: dict[str, tuple[Benchmark, Path | None]]
    benchmarks: dict[str, tuple[Benchmark, Path | None]]

    def identity(self, config: DataConfig, system: str | None) -> str:
        """Digest of everything that decides which rows come out; another one is another mixture."""
        facts: dict[str, Any] = {"config": config.model_dump(mode="json", exclude={"out", "deadline_s"})}
        for kind in ("sources", "benchmarks"):
            facts[kind] = {
                name: [spec.model_dump(mode="json"), None if root is None else str(root.resolve())]
                for name, (spec, root) in getattr(self, kind).items()
            }
        facts["system"], facts["measured"] = system, MEASURED
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def readers(self, deadline_s: float) -> tuple[dict[str, Read], dict[str, Read]]:
        """Of the sources, of the benchmarks."""
        return tuple(  # type: ignore[return-value]
            {name: reader(spec, root, deadline_s) for name, (spec, root) in group.items()}
            for group in (self.sources, self.benchmarks)
        )


def specs_of(config: DataConfig, folder: Path, data_root: Path | None, benchmark_root: Path | None) -> Specs:
    """folder: where the config lies, for the paths in it. data_root, benchmark_root: local copies of sources and of
    benchmarks; the hub where None. Raises UserFault for an unknown benchmark, a faulty YAML, and a source that reads
    the very rows that a benchmark is evaluated on."""
    evaluated = _evaluated(config, folder)
    sources = {}
    for name, source in config.sources.items():
        spec = _changed(_named(source.benchmark, folder), source)
        _refuse_unknown_rule(name, spec)
        _refuse_evaluated_rows(name, spec, evaluated)
        sources[name] = (spec, source.data_root or data_root)
    roots = {name: None if spec.generator else benchmark_root for name, spec in evaluated.items()}
    return Specs(sources, {name: (spec, roots[name]) for name, spec in evaluated.items()})


def reader(spec: Benchmark, root: Path | None, deadline_s: float) -> Read:
    """Rows of one data set, with their pictures as they are stored."""

    def read() -> Iterator[MixtureRow | Skipped]:
        reading = Reading(root, deadline_s=deadline_s, pictures=Encoded)
        for found in outcomes(spec, reading, Tally(spec.name)):
            if isinstance(found, Item):
                yield MixtureRow(**{name: getattr(found.row, name) for name in MixtureRow.__dataclass_fields__})
            else:
                yield Skipped(found.reason, found.what.removeprefix(f"{found.reason}: "), found.where or spec.name)

    return read


class Encoded(Pictures):
    """Gives pictures as the bytes that are stored, neither decoded nor checked: most rows of a large data set are
    never taken."""

    def read(self, record: Record, where: str) -> tuple[Picture, ...]:
        cell = read_field(record, self._images.columns)
        if not is_there(cell):
            return ()
        sources = [self._source(one, where) for one in self._cells(cell, where)]
        return tuple(Picture(_bytes(one, self._roots, where), 0, 0, "", where) for one in sources)


def _bytes(source: Any, roots: list[Path], where: str) -> bytes:
    if isinstance(source, dict) and isinstance(source.get("bytes"), bytes | bytearray):
        return bytes(source["bytes"])
    if isinstance(source, dict) and isinstance(source.get("path"), str):
        source = source["path"]
    if isinstance(source, bytes | bytearray):
        return bytes(source)
    if isinstance(source, str) and source[:5].lower() == "data:":
        return decode_data_url(source, max_bytes=_MAX_BYTES, where=where)
    if isinstance(source, str):
        return read_image_file(source, roots=roots, max_bytes=_MAX_BYTES, where=where)
    return load_picture(source, roots=roots, where=where).png


def _named(name: str, folder: Path) -> Benchmark:
    """By its file beside the config, else by its name or path."""
    beside = folder / name
    return load_benchmark(beside) if beside.suffix in (".yaml", ".yml") and beside.is_file() else find_benchmark(name)


def _changed(spec: Benchmark, source: Source) -> Benchmark:
    changes: dict[str, Any] = {"rows": None}
    given = {"id": source.hub, "config": source.config, "split": source.split, "revision": source.revision}
    given = {key: value for key, value in given.items() if value is not None}
    if source.hub is not None:  # the benchmark's revision and configuration are another data set's
        given = {"split": spec.hub.split if spec.hub else "train", **given}
        changes["hub"] = Hub(**given)
    elif given:
        if spec.hub is None:
            raise UserFault(
                f"the benchmark {spec.name!r} has no hub section to change {', '.join(given)} in", fix="give `hub` too"
            )
        changes["hub"] = Hub(**{**spec.hub.model_dump(), **given})
    changes["files"] = source.files or (() if "split" in given else spec.files)  # patterns of the other split's files
    return spec.model_copy(update=changes)


def _evaluated(config: DataConfig, folder: Path) -> dict[str, Benchmark]:
    leaks = config.leaks
    found = load_all() if leaks.benchmarks == "all" else load_all(_folder(leaks.benchmarks, folder))
    by_name = {spec.name: spec for spec in found}
    for key, names in (("leaks.instead", leaks.instead), ("leaks.without", leaks.without)):
        for name in names:
            if name not in by_name:
                near = nearest(name, by_name, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(by_name)}"
                raise UserFault(f"{key} names the benchmark {name!r}, which is not checked", fix=hint)
    for name, file in leaks.instead.items():
        by_name[name] = _named(file, folder)
    return {name: spec for name, spec in by_name.items() if name not in leaks.without}


def _folder(name: str, folder: Path) -> Path:
    path = folder / name if (folder / name).is_dir() else Path(name)
    if not path.is_dir():
        raise UserFault(
            "no such folder of benchmarks", where=f"leaks.benchmarks: {name}", fix="check the path, or `all`"
        )
    return path


def _refuse_unknown_rule(name: str, spec: Benchmark) -> None:
    try:
        rule_name(spec.name)
    except ValueError as fault:
        raise UserFault(
            f"no reward rule for rows of {spec.name!r}: {fault}",
            where=f"sources.{name}",
            fix="the YAML's `name` becomes data_source, by which the reward finds its rule",
        ) from None


def _refuse_evaluated_rows(name: str, spec: Benchmark, evaluated: dict[str, Benchmark]) -> None:
    def place(one: Benchmark) -> tuple[Any, ...] | None:
        hub = one.hub
        return None if hub is None else (hub.id.lower(), hub.config, hub.split, tuple(sorted(one.where.items())))

    for other in evaluated.values():
        if place(spec) is not None and place(spec) == place(other):
            raise UserFault(
                f"the source reads the rows that {other.name!r} is evaluated on: "
                f"{spec.hub.id if spec.hub else ''}, split {spec.hub.split if spec.hub else ''}",
                where=f"sources.{name}",
                fix="give the training split (`split`), or keep parts of one split apart with `where` (docs/data.md)",
            )
