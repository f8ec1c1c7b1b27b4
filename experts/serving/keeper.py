"""The process between the launcher and one server: it sees to it that nothing of the server is left over.

    python keeper.py GRACE_S SIGNAL COMMAND [ARGUMENT ...]

It leads a session of its own. The server and whatever that starts end, by SIGNAL for GRACE_S seconds and then
by force, when the server's main process is gone, on SIGTERM, and when standard input closes: its other end is
held by the launcher alone, so it closes even if the launcher is killed with -9. Exit code: the server's, 128 +
signal where one ended it. Runs on the standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36  # Linux: prctl
_LEFTOVERS_GRACE_S = 2.0


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value)


def _relatives() -> list[int]:
    """Live processes that came from this one or belong to its session."""
    own, parents, session = os.getpid(), {}, {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if not entry.isdecimal():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                # pid (name) state ppid pgrp session ...; the name may hold blanks and brackets
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] != b"Z":
            parents[int(entry)], session[int(entry)] = int(fields[1]), int(fields[3])
    found = {pid for pid, leader in session.items() if leader == own}
    while True:
        more = {pid for pid, parent in parents.items() if parent == own or parent in found} - found
        if not more:
            return sorted(found - {own})
        found |= more


def _signal_all(number: int) -> bool:
    """Send it to all relatives; whether there were any."""
    pids = _relatives()
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
    return bool(pids)


def _clear(grace_s: float) -> None:
    """End all relatives: SIGTERM, then SIGKILL until none is left."""
    deadline = time.monotonic() + grace_s
    if _signal_all(signal.SIGTERM):
        while _relatives() and time.monotonic() < deadline:
            _reap()
            time.sleep(0.05)
    for _ in range(100):
        if not _signal_all(signal.SIGKILL):
            return
        _reap()
        time.sleep(0.05)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def keep(grace_s: float, polite: int, command: list[str]) -> int:
    """Run the command until it ends or is to end; returns the exit code."""
    _prctl(_SET_SUBREAPER, 1)  # what a dead server leaves behind comes to us
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    asked = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: asked.append(got))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, preexec_fn=lambda: _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        )
    except OSError as error:
        print(f"cannot start {command[0]}: {error}", file=sys.stderr, flush=True)
        return 127
    watched = [0, reader]
    until: float | None = None  # set once the end is asked for
    while server.poll() is None:
        wait = None if until is None else max(0.0, until - time.monotonic())
        if wait == 0.0:
            break
        ready = select.select(watched, [], [], wait)[0]
        if reader in ready:
            os.read(reader, 4096)
        if 0 in ready and not os.read(0, 4096):  # the launcher is gone
            watched.remove(0)
            asked.append(signal.SIGTERM)
        if asked and until is None:
            until = time.monotonic() + grace_s
            with contextlib.suppress(OSError):
                server.send_signal(polite)
    code = server.poll()
    if code is None:
        server.kill()
        code = server.wait()
    _clear(_LEFTOVERS_GRACE_S)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(keep(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
