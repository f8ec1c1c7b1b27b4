"""Records of a data set on the hub, streamed by `datasets`; a hub that can't be had is one clear fault.

The one idea: the library waits and retries as it likes in a thread of its own, and we wait for each record no
longer than a deadline. What the library raises becomes a `UserFault` that names the data set, the cause and the
way out: `--data-root` with a local copy.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

from eval.benchmarks.records import undecoded
from eval.benchmarks.spec import Benchmark, Hub
from registry.errors import UserFault

DEADLINE_S = 120.0
"""For the first record, and between any two."""
ARCHIVE_DEADLINE_S = 3600.0
_AHEAD = 4  # records fetched before they are asked for
Result = TypeVar("Result")


def read_hub(benchmark: Benchmark, *, deadline_s: float = DEADLINE_S) -> Iterator[tuple[dict[str, Any], str]]:
    """Records of the benchmark's split and where each stands, a few in memory at a time.

    Raises UserFault: no hub id, unreachable, no such data set, revision, configuration or split, access not granted,
    or nothing came for `deadline_s` seconds.
    """
    hub = benchmark.hub
    if hub is None:
        raise UserFault(
            f"the benchmark {benchmark.name!r} has no copy on the hub",
            fix="give --data-root with a folder or file that holds it",
        )
    stream = through_datasets(hub.id, config=hub.config, split=hub.split, revision=hub.revision, deadline_s=deadline_s)
    for number, record in enumerate(stream, 1):
        yield record, f"{_name(hub)}: row {number}"


def through_datasets(
    path: str,
    *,
    config: str | None = None,
    split: str,
    revision: str | None = None,
    data_files: str | list[str] | None = None,
    deadline_s: float = DEADLINE_S,
) -> Generator[dict[str, Any], None, None]:
    """Records of `datasets.load_dataset(...)` as a stream, pictures as encoded bytes.

    Raises UserFault as `read_hub` does.
    """

    def produce() -> Iterator[dict[str, Any]]:
        from datasets import load_dataset

        _quiet()
        data = load_dataset(path, config, split=split, revision=revision, data_files=data_files, streaming=True)
        for record in undecoded(data):
            yield dict(record)

    name = f"{path} ({', '.join(filter(None, (config, split, revision)))})"
    yield from _in_thread(produce, name, deadline_s)


def fetch_file(hub: Hub, name: str, *, deadline_s: float = ARCHIVE_DEADLINE_S) -> Path:
    """A file of the data set, in the hub library's own cache. Raises UserFault as `read_hub` does."""

    def produce() -> Iterator[Path]:
        from huggingface_hub import hf_hub_download

        _quiet()
        yield Path(hf_hub_download(hub.id, name, repo_type="dataset", revision=hub.revision))

    return next(_in_thread(produce, f"{_name(hub)}: {name}", deadline_s))


def _name(hub: Hub) -> str:
    return f"{hub.id} ({', '.join(filter(None, (hub.config, hub.split, hub.revision)))})"


def _quiet() -> None:
    """The library's lines on each retry would stand around our one message."""
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()


def _in_thread(produce: Callable[[], Iterator[Result]], name: str, deadline_s: float) -> Iterator[Result]:
    """What a generator yields in a thread of its own, each item within the deadline."""
    items: queue.Queue[Any] = queue.Queue(_AHEAD)
    over = threading.Event()
    end = object()

    def put(item: Any) -> bool:
        while not over.is_set():
            try:
                items.put(item, timeout=0.5)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in produce():
                if not put(item):
                    return
            put(end)
        except Exception as error:  # whatever the library and those below it raise
            put(error)

    threading.Thread(target=work, name=f"hub {name}", daemon=True).start()
    try:
        while True:
            try:
                item = items.get(timeout=deadline_s)
            except queue.Empty:
                raise _fault(name, f"nothing came for {deadline_s:g} s", None) from None
            if item is end:
                return
            if isinstance(item, Exception):
                raise _explained(name, item) from item
            yield item
    finally:
        over.set()


_WAY_OUT = "give --data-root with a local copy"


def _fault(name: str, cause: str, fix: str | None) -> UserFault:
    return UserFault(
        f"the data set can't be had from the hub: {cause}", where=name, fix=f"{fix}, or {_WAY_OUT}" if fix else _WAY_OUT
    )


def _explained(name: str, error: Exception) -> UserFault:
    if isinstance(error, UserFault):
        return error
    kinds = {kind.__name__ for one in _chain(error) for kind in type(one).__mro__}
    said = " ".join(str(error).split())[:300] or type(error).__name__
    lowered = said.lower()
    if "GatedRepoError" in kinds or "gated" in lowered:
        return _fault(name, "access is granted by its owners only", "ask for it on its page and set HF_TOKEN")
    if "RevisionNotFoundError" in kinds:
        return _fault(name, f"no such revision: {said}", "correct hub.revision in the benchmark's YAML")
    offline = kinds & {"OfflineModeIsEnabled", "ConnectionError", "TransportError"}
    if offline or "couldn't reach" in lowered or "offline" in lowered:
        return _fault(name, f"it can't be reached ({said})", "check the network")
    if "RepositoryNotFoundError" in kinds or "DatasetNotFoundError" in kinds:
        return _fault(name, f"there is none of that id, or it needs a token ({said})", "check hub.id, set HF_TOKEN")
    if isinstance(error, ValueError):
        return _fault(name, said, "correct hub.split, hub.config in the benchmark's YAML")
    return _fault(name, f"{type(error).__name__}: {said}", None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
