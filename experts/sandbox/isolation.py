"""Which isolation holds on this machine: each is tried with a program that attacks it.

The one idea: no list of kernels and container settings is right for long, so nothing is concluded from versions.
What passes the trial is used, what does not is named with the reason.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from experts.sandbox.limits import SandboxLimits
from experts.sandbox.running import run_in

NAMES = ("bubblewrap", "namespaces", "landlock")

_SHARED = (
    "no network",
    "no files but the interpreter's and its own",
    "no environment of ours",
    "ends with all it started",
)
_HOLDS = {
    "bubblewrap": (*_SHARED, "limits on all its processes together"),
    "namespaces": (*_SHARED, "limits on all its processes together"),
    "landlock": (*_SHARED, "one process with one thread", "names and sizes of files elsewhere can be asked for"),
}

_TRIAL = """
import os, socket
got = []
for action, flags in (("read", os.O_RDONLY), ("write", os.O_WRONLY), ("create", os.O_CREAT | os.O_WRONLY)):
    try:
        os.open(FOLDER + ("/new" if action == "create" else "/kept"), flags)
        got.append(action + " files outside")
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", PORT), 1)
    got.append("reach the network")
except ConnectionRefusedError:
    got.append("reach the network")
except OSError:
    pass
print(", ".join(got) or "held")
"""


@dataclass(frozen=True)
class Isolation:
    """name: what is used here, `none` where nothing holds. holds: what it ensures. why_not: the others that were
    tried before it, with the reason."""

    name: str
    holds: tuple[str, ...] = ()
    why_not: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def works(self) -> bool:
        return self.name != "none"

    def __str__(self) -> str:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in self.why_not.items())
        return f"isolation {self.name}" + (f" ({reasons})" if reasons else "")


_lock = threading.Lock()
_found: list[Isolation] = []


def available() -> Isolation:
    """The strongest isolation that holds here, tried until one is found: a busy machine can fail a trial."""
    with _lock:
        if _found:
            return _found[0]
        found = _find()
        if found.works:
            _found.append(found)
        return found


def _find() -> Isolation:
    why_not: dict[str, str] = {}
    for name in order():
        reason = why_not_here(name)
        if reason is None:
            return Isolation(name, _HOLDS[name], MappingProxyType(why_not))
        why_not[name] = reason
    return Isolation("none", (), MappingProxyType(why_not))


def order() -> tuple[str, ...]:
    """As root our own namespaces first: they change to the user nobody, bubblewrap stays root's user outside."""
    return ("namespaces", "bubblewrap", "landlock") if os.geteuid() == 0 else NAMES


def why_not_here(name: str) -> str | None:
    """None where the isolation `name` holds, else the reason."""
    if sys.platform != "linux":
        return "needs Linux"
    if name == "bubblewrap" and shutil.which("bwrap") is None:
        return "no program bwrap on the PATH"
    with tempfile.TemporaryDirectory(prefix="maestro-trial-") as folder:
        Path(folder, "kept").write_text("kept")
        Path(folder).chmod(0o777)
        source = f"FOLDER = {folder!r}\nPORT = 9\n{_TRIAL}".encode()
        limits = SandboxLimits(wall_s=20, cpu_s=5)
        result = run_in(name, source, stdin=b"", files={}, packages=(), limits=limits)
    if result.passed:
        said = result.stdout.strip()
        return None if said == "held" else f"does not hold: a program could {said}"
    last = result.stderr.strip().rpartition("\n")[2]
    return result.detail if result.status == "refused" else f"the trial program {result.detail}: {last}"
