"""The process between us and the program: starts it isolated, watches it, ends it with all that it started.

It is a process of its own, so that ours needs no signals, and so that the program ends when ours does: the launcher
holds one end of a pipe, and when the other end closes, for whatever reason, it clears away and goes.
"""

from __future__ import annotations

import errno
import fcntl
import marshal
import os
import select
import sys
import time

from experts.sandbox import linux
from experts.sandbox.child import Pipes
from experts.sandbox.inside import FAULT, READY
from experts.sandbox.layout import SCRATCH
from experts.sandbox.watch import descendants, files_in, folder_use, measure, shared_memory_once

_TICK_S = 0.02
_SETUP_S = 20.0
_CLEARING_S = 5.0
_SCRATCH_FILES = 4096
_READ_BYTES = 65536


class Gone(Exception):
    """Nobody waits for the result any more."""


class _Watched:
    """One program from its start to its end. `cause`: the limit that it met and a sentence on it."""

    def __init__(self, spec: dict, lifeline: int) -> None:
        self.spec = spec
        self.cause: tuple[str, str] | None = None
        self._lifeline = lifeline
        self._kept = {name: bytearray() for name in ("stdout", "stderr", "report")}
        self._begun = self._ended = time.monotonic()
        self._started: float | None = None
        self._status: int | None = None

    def carry_out(self) -> dict:
        self._begin()
        try:
            while not self._over():
                self._wait()
        finally:
            self._clear_away()
        for descriptor in list(self._open):
            self._read(descriptor)
        return self._outcome()

    def _begin(self) -> None:
        ends = {name: os.pipe() for name in self._kept}
        self._open = {ends[name][0]: name for name in self._kept}
        pipes = Pipes(_sealed(self.spec["stdin"]), *(write for _, write in ends.values()))
        self._root = _start(self.spec, pipes)
        for descriptor in (pipes.stdin, pipes.stdout, pipes.stderr, pipes.report):
            os.close(descriptor)
        self._poll = select.poll()
        for descriptor in (*self._open, self._lifeline):
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)
        try:
            self._poll.register(os.pidfd_open(self._root), select.POLLIN)
        except OSError:  # before Linux 5.3 the end is seen at the next tick
            pass
        self._next_look = 0.0

    def _over(self) -> bool:
        if self.cause is None and self._status is None:
            pid, status = os.waitpid(self._root, os.WNOHANG)
            if pid:
                self._status, self._ended = status, time.monotonic()
        return self.cause is not None or self._status is not None

    def _wait(self) -> None:
        """Until something happens, at most one tick; then read, and look at the limits."""
        limit = _SETUP_S if self._started is None else self.spec["wall_s"]
        left = (self._started or self._begun) + limit - time.monotonic()
        ready = {descriptor for descriptor, _ in self._poll.poll(1000 * max(0.0, min(left, _TICK_S)))}
        if self._lifeline in ready:
            raise Gone
        for descriptor in ready & set(self._open):
            self._read(descriptor)
        now = time.monotonic()
        if self._started is None and self._kept["report"].startswith(READY):
            self._started, left = now, self.spec["wall_s"]
        if left <= 0:
            self._stop("timeout", f"ran longer than {self.spec['wall_s']:g} s")
        elif self._started is not None and now >= self._next_look:
            self._look()
            self._next_look = time.monotonic() + _TICK_S

    def _look(self) -> None:
        """The sums that the kernel does not limit by itself."""
        spec = self.spec
        alone = spec["isolation"] == "landlock"
        pids = [self._root] if alone else descendants(self._root)
        tasks, cpu_s, memory_bytes = measure(pids)
        if cpu_s > spec["cpu_s"]:
            self._stop("cpu_limit", f"computed longer than {spec['cpu_s']:g} s")
        elif memory_bytes > spec["memory_bytes"]:
            once = shared_memory_once(pids) if len(pids) > 1 else None
            if once is None or once > spec["memory_bytes"]:
                self._stop("memory_limit", f"all its processes used more than {spec['memory_bytes']} bytes of memory")
        elif tasks > spec["tasks"]:
            self._stop("process_limit", f"started more than {spec['processes']} processes and threads")
        elif alone:
            size, count = folder_use(spec["place"])
            if size > spec["scratch_bytes"] or count > _SCRATCH_FILES:
                self._stop("output_limit", f"wrote {count} files of {size} bytes in all")
        elif spec["isolation"] == "bubblewrap" and pids:  # it limits the size of files, not their number
            count = files_in(f"/proc/{pids[-1]}/root{SCRATCH}")
            if count > _SCRATCH_FILES:
                self._stop("output_limit", f"wrote {count} files")

    def _stop(self, status: str, detail: str) -> None:
        if self.cause is None:
            self.cause, self._ended = (status, detail), time.monotonic()

    def _read(self, descriptor: int) -> None:
        """What is there now; no more than the limit is kept, and one byte over it ends the program."""
        name = self._open[descriptor]
        kept, limit = self._kept[name], self.spec["output_bytes"] if name != "report" else 4096
        while len(kept) <= limit:
            try:
                piece = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            kept += piece
            if not piece:
                break
        # Not closed: the program is to be stopped, not to be told.
        self._poll.unregister(descriptor)
        del self._open[descriptor]
        if len(kept) > limit:
            del kept[limit:]
            self._stop("output_limit", f"wrote more than {limit} bytes to standard {name.removeprefix('std')}")

    def _clear_away(self) -> None:
        """End all processes and wait for them: when this returns, none is left. Raises OSError after `_CLEARING_S`."""
        if self._status is None:
            os.kill(self._root, linux.SIGKILL)
        deadline = time.monotonic() + _CLEARING_S
        while time.monotonic() < deadline:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                time.sleep(0.001)
            elif pid == self._root and self._status is None:
                self._status = status
        raise OSError(errno.EBUSY, f"not all its processes were gone after {_CLEARING_S:g} s")

    def _outcome(self) -> dict:
        report = bytes(self._kept["report"])
        outcome: dict = {"fault": None, "returncode": None, "cause": self.cause}
        if FAULT in report[:2]:
            outcome["fault"] = report[report.index(FAULT) + 1 :].decode("utf-8", "replace")
        elif not report.startswith(READY):
            said = bytes(self._kept["stderr"]).decode("utf-8", "replace").strip()
            outcome["fault"] = said[-1000:] or "the program did not start"
        elif self.cause is None:
            outcome["returncode"] = self._returncode(report)
        began = self._ended if self._started is None else self._started
        outcome["seconds"] = self._ended - began
        return outcome | {name: bytes(self._kept[name]) for name in ("stdout", "stderr")}

    def _returncode(self, report: bytes) -> int:
        told = report.rpartition(b"S")[2]  # by init, which itself ends with 0
        code = os.waitstatus_to_exitcode(int(told) if told.strip().isdigit() else self._status or 0)
        if self.spec["isolation"] == "bubblewrap" and code > 128:
            code = 128 - code  # bwrap says 128 + signal
        return code


def _start(spec: dict, pipes: Pipes) -> int:
    if spec["isolation"] == "namespaces":
        from experts.sandbox.namespaces import start
    elif spec["isolation"] == "bubblewrap":
        from experts.sandbox.bubblewrap import start
    else:
        from experts.sandbox.landlock import start
    return start(spec, pipes)


def _sealed(content: bytes) -> int:
    """Standard input: a file in memory that nobody can change."""
    descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    fcntl.fcntl(descriptor, 1033, 1 | 2 | 4 | 8)  # F_ADD_SEALS: no more seals, shrinking, growing, writing
    return descriptor


def main() -> None:
    """Reads what to run from standard input, writes what came of it to standard output, both with marshal."""
    lifeline = int(sys.argv[2])
    os.set_inheritable(lifeline, False)
    with open(0, "rb", closefd=False) as file:
        spec = marshal.load(file)
    try:
        linux.adopt_orphans()
        outcome = _Watched(spec, lifeline).carry_out()
    except OSError as error:
        # strerror holds the name of the call where ours raised it
        outcome = {"fault": error.strerror or errno.errorcode.get(error.errno or 0, str(error))}
    except Gone:
        if spec["place"]:
            import shutil

            shutil.rmtree(spec["place"], ignore_errors=True)
        return
    with open(1, "wb", closefd=False) as file:
        marshal.dump(outcome, file)
