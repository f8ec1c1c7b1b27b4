"""Starting verl so that nothing outlives the run, and finding what a killed run left behind.

One idea: every process of a run inherits `MAESTRO_RUN`; whoever carries it and is not us belongs to the run.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

RUN_VARIABLE = "MAESTRO_RUN"


def start(command: Sequence[str], env: Mapping[str, str], log: Path, run: Path) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, output to `log`; it dies with its parent."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command),
            env={**os.environ, **env, RUN_VARIABLE: str(run)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )


def _die_with_parent() -> None:
    """Linux: the kernel ends this process when its parent is gone, kill -9 included."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def members(run: Path) -> list[psutil.Process]:
    """All live processes of the run, but for this one and its ancestors."""
    own = {os.getpid(), *(p.pid for p in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        if process.pid in own:
            continue
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(RUN_VARIABLE) == str(run):
                found.append(process)
    return found


def stop(run: Path, patience: float = 10.0) -> int:
    """End every process of the run: politely, then by force. Returns how many there were."""
    processes = members(run)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=patience)
    for process in [*alive, *members(run)]:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=patience)
    return len(processes)
