"""One shard of an evaluation, run in a process of its own.

The one idea: it is the ordinary evaluation of that shard, in the ordinary folder; what a node adds is only that it must
see the same files. Outcomes are plain values, so that nothing is lost on the way between processes.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.config import EvalConfig
from eval.engines.progress import Counter, Steps
from eval.engines.shared_folder import SharedFolder
from eval.journal import JournalBusy
from eval.run import evaluate
from eval.shard import Shard
from registry.errors import UserFault
from registry.registry import Registry


@dataclass(frozen=True)
class Job:
    """What every shard of an evaluation is told; paths that are not absolute start at ``cwd``."""

    config: EvalConfig
    registry: tuple[str, ...]
    registry_digest: str
    cwd: Path
    shared: SharedFolder
    limit: int | None
    retry_errors: bool


@dataclass(frozen=True)
class Outcome:
    """How a shard's run ended: ``fault`` (what, where, fix) where its user must mend something; ``again`` where
    another try may do."""

    ran: int = 0
    repaired_bytes: int = 0
    fault: tuple[str, str | None, str | None] | None = None
    again: bool = False


@dataclass(frozen=True)
class Look:
    """What a worker tells while it runs."""

    phases: dict[str, Steps]
    warnings: tuple[str, ...] = ()


class Worker:
    """Runs one shard once. ``run`` blocks; the others may be called from other threads meanwhile."""

    def __init__(self, job: Job, shard: Shard, folder: Path) -> None:
        self.job, self.shard, self.folder = job, shard, folder
        self.counter = Counter()
        self._warnings: list[str] = []
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def node(self) -> str:
        """The name of the machine."""
        return socket.gethostname()

    def run(self) -> Outcome:
        """Evaluate the shard. Raises whatever is not the user's to mend."""
        try:
            self._enter()
            return asyncio.run(_evaluate(self))
        except JournalBusy as fault:
            # a worker that was lost with its node may hold the lock for a while
            return Outcome(fault=(fault.what, fault.where, fault.fix), again=True)
        except UserFault as fault:
            return Outcome(fault=(str(fault.what), fault.where, fault.fix))
        except asyncio.CancelledError:
            return Outcome(fault=("stopped", None, None))

    def progress(self) -> dict[str, Steps]:
        return self.counter.read()

    def look(self) -> Look:
        """Progress, and every warning so far: the versions with which the shard's folder was begun are others now."""
        return Look(self.counter.read(), tuple(self._warnings))

    def warn(self, line: str) -> None:
        self._warnings.append(line)

    def stop(self) -> None:
        """End the run as an interrupted one ends: what is finished is in the journal, and processes are gone."""
        self._stopped = True
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it has ended meanwhile
                self._loop.call_soon_threadsafe(self._task.cancel)

    def attach(self) -> None:
        """Called in the run's own event loop, so that ``stop`` can reach it. Raises CancelledError after a stop."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._stopped:
            raise asyncio.CancelledError

    def _enter(self) -> None:
        try:
            os.chdir(self.job.cwd)
        except OSError as error:
            raise UserFault(
                f"the node {socket.gethostname()} does not see the folder in which the evaluation was started",
                where=str(self.job.cwd),
                fix="start it in a folder that all nodes share under the same path",
            ) from error
        self.job.shared.check()


# Not a method: Ray runs every method of a class that has a coroutine among them in one event loop.
async def _evaluate(worker: Worker) -> Outcome:
    worker.attach()
    job = worker.job
    registry = Registry.load(*job.registry)
    if registry.digest != job.registry_digest:
        raise UserFault(
            f"the node {socket.gethostname()} reads another registry",
            where=", ".join(job.registry) or "the default registry",
            fix="install the same version of the program, and share the registry's files under the same path",
        )
    done = await evaluate(
        job.config,
        registry,
        worker.folder,
        limit=job.limit,
        retry_errors=job.retry_errors,
        shard=worker.shard,
        start_phase=worker.counter.start_phase,
        warn=worker.warn,
    )
    return Outcome(done.ran, done.repaired_bytes)
