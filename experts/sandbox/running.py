"""One run under one isolation: what the launcher is told, and what it says read as a result."""

from __future__ import annotations

import marshal
import math
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from experts.sandbox.layout import CONFIG, ENVIRONMENT, PYTHON, SCRATCH, SITE
from experts.sandbox.limits import SandboxLimits
from experts.sandbox.result import SandboxResult, Status
from experts.sandbox.view import View, view_of

PROGRAM = "main.py"
_ROOT = str(Path(__file__).resolve().parents[2])
_LAUNCH = "import sys; sys.path.append(sys.argv[1]); from experts.sandbox.launcher import main; main()"
# Beyond the program's own time: setting up, clearing away, and a machine that is busy.
_GRACE_S = 30.0
_STACK_BYTES = 8 * 1024 * 1024


def run_in(
    isolation: str,
    source: bytes,
    *,
    stdin: bytes,
    files: Mapping[str, bytes],
    packages: Sequence[str],
    limits: SandboxLimits,
) -> SandboxResult:
    """Never raises for what the program does. Raises ValueError for names of files that are no names below the
    scratch folder, UserFault for packages that are not installed."""
    given = {**{_below(name): bytes(content) for name, content in files.items()}, PROGRAM: source}
    size = sum(map(len, given.values())) + len(stdin)
    if size > limits.scratch_bytes:
        detail = f"source, input and files have {size} bytes; scratch_bytes allows {limits.scratch_bytes}"
        return SandboxResult("refused", isolation=isolation, detail=detail)
    view = view_of(packages)
    place = None
    try:
        if isolation == "landlock":
            place = tempfile.mkdtemp(prefix="maestro-sandbox-")
            _furnish(place, view)
        spec = _spec(isolation, view, limits, place) | {"stdin": stdin, "files": given}
        outcome = _launch(spec, limits.wall_s + _GRACE_S)
    except OSError as error:
        return SandboxResult("refused", isolation=isolation, detail=f"could not be set up: {error}")
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
    return _result(isolation, outcome)


def _below(name: str) -> str:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\0" in name or str(path) in (".", PROGRAM):
        raise ValueError(f"{name!r} is not a name for a file beside {PROGRAM}")
    return str(path)


def _furnish(place: str, view: View) -> None:
    """On the disk what the others build in memory: an environment to read, a scratch folder to write."""
    os.mkdir(place + SCRATCH)
    site = Path(place + ENVIRONMENT, SITE)
    site.mkdir(parents=True)
    for package in view.packages:
        (site / os.path.basename(package)).symlink_to(package)
    python = Path(place + ENVIRONMENT, PYTHON)
    python.parent.mkdir()
    python.symlink_to(view.executable)
    Path(place + ENVIRONMENT, CONFIG).write_text(view.config)


def _spec(isolation: str, view: View, limits: SandboxLimits, place: str | None) -> dict[str, Any]:
    home = (place or "") + SCRATCH
    environment = {
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # A thread a core would count as processes and take address space.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if view.library_path:
        environment["LD_LIBRARY_PATH"] = view.library_path
    # The first process of the namespace counts where it has the program's own user.
    first = 0 if isolation == "namespaces" and os.geteuid() == 0 else 1
    return {
        "isolation": isolation,
        "executable": view.executable,
        "config": view.config,
        "command": [f"{place or ''}{ENVIRONMENT}/{PYTHON}", PROGRAM],
        "env": environment,
        "reads": view.reads,
        "packages": view.packages,
        "links": view.links,
        "devices": view.devices,
        "bwrap": shutil.which("bwrap"),
        "place": place,
        "rlimits": _rlimits(limits, first, alone=isolation == "landlock"),
        "wall_s": limits.wall_s,
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes,
        "output_bytes": limits.output_bytes,
        "scratch_bytes": limits.scratch_bytes,
        "processes": limits.processes,
        "tasks": limits.processes + (isolation == "bubblewrap"),
    }


def _rlimits(limits: SandboxLimits, first: int, *, alone: bool) -> list[tuple[int, int]]:
    kinds = [
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, math.ceil(limits.cpu_s) + 1),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.scratch_bytes),
        (resource.RLIMIT_STACK, _STACK_BYTES),
        (resource.RLIMIT_CORE, 0),
    ]
    # Alone, it starts nothing anyway, and the limit would count all else that the user runs.
    return kinds if alone else [*kinds, (resource.RLIMIT_NPROC, limits.processes + first)]


def _launch(spec: dict[str, Any], patience_s: float) -> dict[str, Any]:
    """Raises OSError where the launcher cannot be started or says nothing."""
    lifeline, held = os.pipe()
    environment = {"LD_LIBRARY_PATH": spec["env"]["LD_LIBRARY_PATH"]} if "LD_LIBRARY_PATH" in spec["env"] else {}
    command = [spec["executable"], "-I", "-S", "-c", _LAUNCH, _ROOT, str(lifeline)]
    try:
        with tempfile.TemporaryFile() as given:
            marshal.dump(spec, given)
            given.seek(0)
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(lifeline,),
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        os.close(lifeline)
        lifeline = -1
        return _await(process, patience_s)
    finally:
        os.close(held)  # wherever we stopped waiting, the launcher clears away now
        if lifeline >= 0:
            os.close(lifeline)


def _await(process: subprocess.Popen[bytes], patience_s: float) -> dict[str, Any]:
    with process:
        try:
            said, complaint = process.communicate(timeout=patience_s)
        except BaseException as error:
            process.kill()  # and with it, by the kernel, all that it keeps
            if isinstance(error, subprocess.TimeoutExpired):
                raise OSError(f"no word from the launcher in {patience_s:g} s") from None
            raise
    try:
        return marshal.loads(said)
    except (EOFError, ValueError, TypeError):
        last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise OSError(f"the launcher ended with {process.returncode}: {last}") from None


def _result(isolation: str, outcome: dict[str, Any]) -> SandboxResult:
    if outcome["fault"] is not None:
        return SandboxResult("refused", isolation=isolation, detail=f"could not be set up: {outcome['fault']}")
    stdout, stderr = (outcome[name].decode("utf-8", "replace") for name in ("stdout", "stderr"))
    code: int | None = outcome["returncode"]
    status, detail = outcome["cause"] or _judge(code, stderr)
    return SandboxResult(status, code, stdout, stderr, outcome["seconds"], isolation, detail)


def _judge(code: int | None, stderr: str) -> tuple[Status, str]:
    if code == 0:
        return "passed", ""
    if code == -24:  # SIGXCPU
        return "cpu_limit", "computed too long"
    last = stderr.rstrip().rpartition("\n")[2]
    if last.startswith("MemoryError"):
        return "memory_limit", "asked for more memory than it may have"
    if code is not None and code < 0:
        return "failed", f"ended by signal {-code}"
    return "failed", f"ended with exit code {code}"
