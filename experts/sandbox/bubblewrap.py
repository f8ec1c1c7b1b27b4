"""Isolation `bubblewrap`: the same view and namespaces, made by the program `bwrap`."""

from __future__ import annotations

import marshal
import os

from experts.sandbox import inside, linux, seccomp
from experts.sandbox.child import Pipes, end_first, never_return
from experts.sandbox.layout import CONFIG, ENVIRONMENT, PYTHON, SCRATCH
from experts.sandbox.namespaces import NOBODY, places


def start(spec: dict, pipes: Pipes) -> int:
    """The id of bwrap's outer process; when it dies, all inside do."""
    given = _memory("spec", marshal.dumps(spec))
    calls = _memory("filter", seccomp.program(alone=False)) if linux.X86_64 else None
    config = _memory("config", spec["config"].encode())
    outer = os.fork()
    if outer == 0:
        never_return(pipes.report, lambda: _become_bwrap(spec, pipes, given, config, calls))
    return outer


def _become_bwrap(spec: dict, pipes: Pipes, given: int, config: int, calls: int | None) -> None:
    linux.die_with_parent()
    end_first()
    os.setsid()
    for number, descriptor in enumerate((pipes.stdin, pipes.stdout, pipes.stderr)):
        os.dup2(descriptor, number)
    for descriptor in (pipes.report, given, config, *([] if calls is None else [calls])):
        os.set_inheritable(descriptor, True)
    with open(inside.__file__, encoding="utf-8") as file:
        last_steps = file.read()
    command = [spec["bwrap"], *_options(spec, config, calls), "--", spec["executable"], "-I", "-S", "-c"]
    command += [last_steps, str(pipes.report), str(given)]
    os.execve(command[0], command, {})


def _options(spec: dict, config: int, calls: int | None) -> list[str]:
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--uid", str(NOBODY), "--gid", str(NOBODY)]
    for source, target in places(spec):
        options += ["--ro-bind", source, target]
    for device in spec["devices"]:
        options += ["--dev-bind", device, device]
    options += ["--ro-bind-data", str(config), f"{ENVIRONMENT}/{CONFIG}"]
    for target, path in [*spec["links"], (SCRATCH, "/tmp"), (spec["executable"], f"{ENVIRONMENT}/{PYTHON}")]:
        options += ["--symlink", target, path]
    options += ["--size", str(spec["scratch_bytes"]), "--tmpfs", SCRATCH, "--remount-ro", "/", "--chdir", SCRATCH]
    if calls is not None:
        options += ["--seccomp", str(calls)]
    return options


def _memory(name: str, content: bytes) -> int:
    descriptor = os.memfd_create(name)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
