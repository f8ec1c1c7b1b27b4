"""Which benchmarks there are: the files of `configs/benchmarks/`, and any file or folder that is named instead."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from eval.benchmarks.spec import Benchmark
from eval.yaml_config import load_config
from registry.errors import UserFault
from registry.names import nearest, normalise

SHIPPED = Path(__file__).resolve().parents[2] / "configs" / "benchmarks"
_SUFFIXES = (".yaml", ".yml")


def load_benchmark(path: Path) -> Benchmark:
    """One file. Raises UserFault with every fault, its file and line."""
    return load_config(Benchmark, path)


def load_all(folder: Path = SHIPPED) -> tuple[Benchmark, ...]:
    """All benchmarks of a folder, by name. Raises UserFault for a faulty file, or a name used twice."""
    found: dict[str, Path] = {}
    loaded = []
    for path in _files(folder):
        benchmark = load_benchmark(path)
        for name in {normalise(one) for one in (benchmark.name, *benchmark.aliases)}:
            if name in found:
                raise UserFault(
                    f"two benchmarks are called {name!r}", where=f"{found[name]}, {path}", fix="rename one of them"
                )
            found[name] = path
        loaded.append(benchmark)
    return tuple(sorted(loaded, key=lambda one: one.name))


def find_benchmarks(name: str) -> tuple[Benchmark, ...]:
    """The benchmarks that a word stands for: one by its name or alias, one by its file, all of a folder.

    Raises UserFault for an unknown name (the nearest ones are told), a faulty file, an empty folder.
    """
    path = Path(name)
    if path.suffix in _SUFFIXES or "/" in name or path.is_dir():
        if path.is_dir():
            found = load_all(path)
            if not found:
                raise UserFault(f"the folder holds no {' or '.join(_SUFFIXES)} file", where=name)
            return found
        return (load_benchmark(path),)
    wanted = normalise(name)
    shipped = _shipped()
    if wanted in shipped:
        return (shipped[wanted],)
    near = nearest(name, sorted({one.name for one in shipped.values()}))
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise UserFault(
        f"unknown benchmark {name!r}", fix=f"{hint}see `maestro benchmarks list`, or give the path of a YAML file"
    )


def find_benchmark(name: str) -> Benchmark:
    """The one benchmark that a word stands for. Raises UserFault, also for a folder with several."""
    found = find_benchmarks(name)
    if len(found) != 1:
        raise UserFault(f"{len(found)} benchmarks where one is wanted", where=name, fix="name one of the files")
    return found[0]


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Benchmark]:
    return {normalise(name): one for one in load_all() for name in (one.name, *one.aliases)}


def _files(folder: Path) -> Iterator[Path]:
    try:
        return iter(sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file()))
    except OSError as fault:
        raise UserFault(f"can't be read: {fault.strerror or fault}", where=str(folder)) from fault
