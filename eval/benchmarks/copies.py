"""Where the data of a benchmark lies in a local copy.

The one idea: `--data-root` may be the benchmark's own folder, a folder that holds one of its name, or one file.
In a folder the sample layout (`samples.jsonl`) is looked for first, then a folder written by `datasets`, then
files by the patterns of the benchmark and of its split, as the hub lays them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eval.benchmarks.spec import Benchmark
from registry.errors import UserFault
from registry.names import normalise

Kind = Literal["lines", "json", "parquet", "table", "saved"]
_KINDS: dict[str, Kind] = {
    ".jsonl": "lines", ".ndjson": "lines", ".json": "json", ".parquet": "parquet", ".tsv": "table", ".csv": "table",
}  # fmt: skip
# Beside data files of the hub lie files about them.
_ABOUT = frozenset({"dataset_info.json", "dataset_infos.json", "state.json", "dataset_dict.json"})


@dataclass(frozen=True)
class Copy:
    """Files that together hold the rows, in order. `saved` is a folder written by `datasets`."""

    files: tuple[Path, ...]
    kind: Kind
    folder: Path
    """Where relative paths of images start."""


def find_copy(benchmark: Benchmark, data_root: Path) -> Copy:
    """The local copy. Raises UserFault that says where was looked and what was there."""
    if data_root.is_file():
        kind = _KINDS.get(data_root.suffix)
        if kind is None:
            raise UserFault(
                f"a {data_root.suffix or 'nameless'} file holds no rows",
                where=str(data_root),
                fix=f"known are {', '.join(_KINDS)}",
            )
        return Copy((data_root,), kind, data_root.parent)
    if not data_root.is_dir():
        raise UserFault("no such folder or file", where=str(data_root), fix="check --data-root")
    folder = _own_folder(benchmark, data_root)
    found = _in_folder(benchmark, folder)
    if found is None:
        there = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
        raise UserFault(
            f"no data of the benchmark {benchmark.name!r}",
            where=f"{folder} (it holds: {there})",
            fix=f"give its own folder or file; looked for {', '.join(_patterns(benchmark)[:6])}",
        )
    return found


def _own_folder(benchmark: Benchmark, root: Path) -> Path:
    names = {normalise(one) for one in (benchmark.name, benchmark.title, *benchmark.aliases)}
    if benchmark.hub is not None:
        names.add(normalise(benchmark.hub.id.partition("/")[2]))
    folders = sorted(path for path in root.iterdir() if path.is_dir())
    return next((path for path in folders if normalise(path.name) in names), root)


def _in_folder(benchmark: Benchmark, folder: Path) -> Copy | None:
    if (folder / "samples.jsonl").is_file():
        return Copy((folder / "samples.jsonl",), "lines", folder)
    split = benchmark.hub.split if benchmark.hub else "test"
    for place in (folder, folder / split):
        if (place / "state.json").is_file() and (place / "dataset_info.json").is_file():
            return Copy((place,), "saved", folder)
    files = _data_files(benchmark, folder)
    for pattern in _patterns(benchmark):
        matching = [path for path in files if path.match(pattern)]
        if matching:
            return _copy_of(matching, folder)
    return _copy_of(files, folder) if len(files) == 1 else None


def _patterns(benchmark: Benchmark) -> Sequence[str]:
    split = benchmark.hub.split if benchmark.hub else "test"
    named = [f"{split}{middle}{suffix}" for suffix in _KINDS for middle in ("", "-*")]
    return [*benchmark.files, *named, *(f"*{split}*{suffix}" for suffix in _KINDS)]


def _data_files(benchmark: Benchmark, folder: Path) -> list[Path]:
    """Data files of the folder itself, and of those that a copy of the hub has: `data`, the configuration's, the
    split's. No others: they may be another benchmark's."""
    hub = benchmark.hub
    names = [
        "",
        "data",
        *([hub.config or "default", f"data/{hub.config}", hub.split, f"data/{hub.split}"] if hub else []),
    ]
    found: list[Path] = []
    for name in dict.fromkeys(names):
        place = folder / name
        if place.is_dir():
            found += sorted(
                path for path in place.iterdir() if path.suffix in _KINDS and path.name not in _ABOUT and path.is_file()
            )
    return found


def _copy_of(files: Iterable[Path], folder: Path) -> Copy:
    """Files of one kind: that of the first."""
    ordered = list(files)
    suffix = ordered[0].suffix
    same = tuple(path for path in ordered if path.suffix == suffix)
    return Copy(same, _KINDS[suffix], folder)
