"""Help for the sandbox's tests: runs that leave a mark, and a search for processes that carry it."""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import time
from typing import Any

from experts.sandbox.isolation import NAMES, why_not_here
from experts.sandbox.limits import SandboxLimits
from experts.sandbox.result import SandboxResult
from experts.sandbox.run import run_python

MIB = 1024 * 1024
ABSENT = {name: reason for name in NAMES if (reason := why_not_here(name)) is not None}


def carriers(mark: str) -> list[int]:
    """Processes whose current folder holds the file `mark`: those of the run that was given it."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                if os.path.exists(f"/proc/{entry}/cwd/{mark}"):
                    found.append(int(entry))
    return found


def wait_until(condition, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def attack(source: str, isolation: str, *, stdin: str = "", test: str = "", **limits: Any) -> SandboxResult:
    """Run it under tight limits; no process of it may be left when the result is there."""
    mark = f"mark-{secrets.token_hex(8)}"
    bounds = SandboxLimits(**{"wall_s": 20.0, "cpu_s": 20.0, "memory_bytes": 128 * MIB, "processes": 8} | limits)
    result = run_python(source, stdin=stdin, test=test, files={mark: b""}, limits=bounds, isolation=isolation)
    assert carriers(mark) == [], "processes were left"
    return result


def refusing_filter(*, landlock: bool) -> bytes:
    """A seccomp filter like that of a container: no new namespaces; with `landlock` no Landlock either."""
    load, bit_set, equal, ret = 0x20, 0x45, 0x15, 0x06
    eperm, enosys, allow = 0x00050001, 0x00050026, 0x7FFF0000
    steps = [
        (load, 0, 0, 0),
        (equal, 0, 1, 272),  # unshare
        (ret, 0, 0, eperm),
        (equal, 0, 1, 435),  # clone3
        (ret, 0, 0, enosys),
        *([(equal, 0, 1, 444), (ret, 0, 0, enosys)] if landlock else []),
        (equal, 0, 3, 56),  # clone
        (load, 0, 0, 16),
        (bit_set, 0, 1, 0x7E020000),
        (ret, 0, 0, eperm),
        (ret, 0, 0, allow),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)
