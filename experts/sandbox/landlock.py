"""Isolation `landlock`: for machines that forbid namespaces, as containers commonly do.

Landlock governs which files are read and written, the filter on system calls all else. There is no process
namespace, so the program stays one process with one thread: what can't be started need not be hunted down.
"""

from __future__ import annotations

import ctypes
import os

from experts.sandbox import inside, linux, seccomp
from experts.sandbox.child import Pipes, end_first, never_return
from experts.sandbox.layout import ENVIRONMENT, SCRATCH

_EXECUTE, _WRITE, _READ, _LIST, _REMOVE_FILE, _MAKE_FILE, _TRUNCATE = 1, 2, 4, 8, 1 << 5, 1 << 8, 1 << 14
_FIRST_RIGHTS = (1 << 13) - 1
_RIGHTS_BY_VERSION = {2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}
_LOOKING = _EXECUTE | _READ | _LIST
# No folders: the tree stays flat, so that adding it up and clearing it away cannot be made hard.
_SCRATCHING = _READ | _LIST | _WRITE | _TRUNCATE | _MAKE_FILE | _REMOVE_FILE
_FOR_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE


def start(spec: dict, pipes: Pipes) -> int:
    """The id of the program. Raises OSError where the kernel has no Landlock."""
    if not linux.X86_64:
        raise OSError("the filter on system calls is for x86-64 only")
    linux.landlock_version()
    keeper = os.getpid()
    program = os.fork()
    if program == 0:
        never_return(pipes.report, lambda: _program(spec, pipes, keeper))
    return program


def _program(spec: dict, pipes: Pipes, keeper: int) -> None:
    linux.die_with_parent()
    if os.getppid() != keeper:
        os._exit(125)
    end_first()
    os.setsid()
    report = pipes.attach()
    os.chdir(spec["place"] + SCRATCH)
    inside.prepare(spec)
    linux.drop_capabilities()
    linux.no_new_privileges()
    _restrict(spec)
    linux.filter_calls(seccomp.program(alone=True, own_pid=os.getpid()))
    inside.become_program(spec, report)


def _restrict(spec: dict) -> None:
    version = linux.landlock_version()
    governed = _FIRST_RIGHTS | sum(right for since, right in _RIGHTS_BY_VERSION.items() if version >= since)
    network = 3 if version >= 4 else 0
    scopes = 3 if version >= 6 else 0
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    assert size <= ctypes.sizeof(linux.RulesetAttr)
    ruleset = linux.landlock_ruleset(linux.RulesetAttr(governed, network, scopes), size)
    rules = [(path, _LOOKING) for path in (*spec["reads"], *spec["packages"], spec["place"] + ENVIRONMENT)]
    rules += [(device, _READ | _WRITE) for device in spec["devices"]]
    for path, rights in [*rules, (spec["place"] + SCRATCH, _SCRATCHING)]:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not os.path.isdir(path):
            rights &= _FOR_FILES
        linux.landlock_allow(ruleset, folder, rights & governed)
        os.close(folder)
    linux.landlock_restrict(ruleset)
    os.close(ruleset)
