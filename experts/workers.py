"""Threads for programs that may take long or never come back.

The one idea: a thread cannot be stopped, only given up. A call that overruns its deadline is abandoned: its
caller goes on, a fresh thread takes its place, and the lost one ends by itself when the program returns.
The number of lost threads is bounded; beyond it new calls are refused at once instead of piling up. Threads
are daemons, so a program that never returns does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
_abandoned: set[threading.Thread] = set()  # of all workers of the process: threads inside calls that were given up


def calls_given_up() -> int:
    """How many calls that were given up still run. Native code in such a thread aborts the process while the
    interpreter shuts down, so who ends a process looks here first and leaves without shutting down (`os._exit`)."""
    return sum(thread.is_alive() for thread in tuple(_abandoned))


class NoWorker(Exception):
    """Too many earlier calls never came back, or the workers are closed."""


class _Job:
    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.future: Future[Any] = Future()
        self.abandoned = False
        self.thread: threading.Thread | None = None


class Workers:
    """At most `size` calls run at once; at most `max_lost` abandoned ones are waited for."""

    def __init__(self, size: int | None = None, *, max_lost: int | None = None) -> None:
        self.size = size or min(8, 2 * (os.cpu_count() or 2))
        self.max_lost = 4 * self.size if max_lost is None else max_lost
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._alive = 0  # threads that take jobs
        self._outstanding = 0  # jobs queued or running, abandoned ones left out
        self._lost = 0
        self._closed = False

    async def run(self, call: Callable[[], T], timeout_s: float) -> T:
        """`call()` in a thread. Raises TimeoutError after `timeout_s`, NoWorker when none is to be had, and
        whatever `call` raises. A cancelled caller abandons the call as a late one does."""
        job = self._submit(call)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.wrap_future(job.future)
        except (TimeoutError, asyncio.CancelledError):
            self._abandon(job)
            raise

    def close(self) -> None:
        """Let all threads end after the jobs they have."""
        with self._lock:
            self._closed = True
            for _ in range(self._alive):
                self._jobs.put(None)

    def _submit(self, call: Callable[[], Any]) -> _Job:
        job = _Job(call)
        with self._lock:
            if self._closed:
                raise NoWorker("the pool is closed")
            if self._lost > self.max_lost:
                raise NoWorker(f"{self._lost} earlier calls passed their deadline and never came back")
            self._outstanding += 1
            self._jobs.put(job)
            self._hire()
        return job

    def _hire(self) -> None:
        if self._outstanding > self._alive and self._alive < self.size:
            self._alive += 1
            threading.Thread(target=self._work, name="maestro-expert", daemon=True).start()

    def _abandon(self, job: _Job) -> None:
        with self._lock:
            # Cancelled: still queued, a worker passes over it. Done: it came back at the last moment.
            if job.future.cancel() or job.future.done():
                return
            job.abandoned = True
            if job.thread is not None:
                _abandoned.add(job.thread)
            self._lost += 1
            self._outstanding -= 1
            self._alive -= 1
            if not self._closed:
                self._hire()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            job.thread = threading.current_thread()
            self._carry_out(job)
            with self._lock:
                if job.abandoned:
                    self._lost -= 1
                    _abandoned.discard(job.thread)
                    return
                self._outstanding -= 1

    def _carry_out(self, job: _Job) -> None:
        if not job.future.set_running_or_notify_cancel():
            return
        try:
            result = job.call()
        except Exception as error:
            job.future.set_exception(error)
        except BaseException as error:  # a program that calls sys.exit() must not end the event loop
            job.future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
        else:
            job.future.set_result(result)
