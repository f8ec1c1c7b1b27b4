"""The filter on system calls, as classic BPF for x86-64: a list of what is allowed, all else fails.

Under `alone` the process cannot start another, cannot signal anyone but itself, and cannot change owner, mode or
times of files, for there only this filter keeps it from doing so (Landlock governs none of these).
"""

from __future__ import annotations

import errno
import struct

from experts.sandbox.syscalls import ALLOWED, COMPANY, NUMBERS

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ARCH_X86_64 = 0xC000003E
_X32 = 0x40000000
# The C library tries these and falls back where the kernel does not know them: clone3, openat2 and others.
_FIRST_YOUNG = 424
_KILL, _ALLOW, _ERROR = 0x80000000, 0x7FFF0000, 0x00050000
_ALL = 0xFFFFFFFF

Rule = list[list[tuple[int, int, int]]]
"""Ways to be allowed; each a list of (argument, mask, value) that must all hold. Arguments are read as 32 bits:
all that are looked at here are ints to the kernel, or have no meaning above."""


def _one_of(argument: int, values: tuple[int, ...]) -> Rule:
    return [[(argument, _ALL, value)] for value in values]


# O_RDONLY with O_TRUNC empties a file without asking Landlock before version 3.
def _opening(argument: int) -> Rule:
    return [[(argument, 0x200, 0)], [(argument, 3, 1)], [(argument, 3, 2)]]


_NEW_NAMESPACES = 0x7E020000
_RULES: dict[str, Rule] = {
    "open": _opening(1),
    "openat": _opening(2),
    # isatty, FIONREAD, FIONBIO, close on exec, size of the window.
    "ioctl": _one_of(1, (0x5401, 0x541B, 0x5421, 0x5450, 0x5451, 0x5413)),
    # Not F_SETOWN, F_SETSIG: they send signals to others. Not F_SETPIPE_SZ, F_SETLEASE, F_NOTIFY.
    "fcntl": _one_of(1, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)),
    # Names, and questions; not PR_SET_PDEATHSIG, by which it dies with its keeper.
    "prctl": _one_of(0, (2, 3, 15, 16, 23, 39, 0x53564D41)),
    "prlimit64": _one_of(0, (0,)),
    # Unix streams to oneself (asyncio wakes itself so); datagrams could be addressed to others.
    "socketpair": [[(0, _ALL, 1), (1, 0xF, 1)]],
}


def _rules(alone: bool, own_pid: int) -> dict[str, Rule]:
    if alone:
        return _RULES | {name: _one_of(0, (own_pid,)) for name in ("kill", "tgkill")}
    return _RULES | {"clone": [[(0, _NEW_NAMESPACES, 0)]]}


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def _block(rule: Rule) -> list[bytes]:
    refuse = [_step(_RETURN, _ERROR | errno.EPERM)]
    steps: list[bytes] = []
    for way in rule:
        here: list[bytes] = []
        for left, (argument, mask, value) in zip(range(len(way) - 1, -1, -1), way, strict=True):
            here += [_step(_LOAD, 16 + 8 * argument), _step(_AND, mask), _step(_EQUAL, value, 0, 3 * left + 1)]
        steps += [*here, _step(_RETURN, _ALLOW)]
    return steps + refuse


def program(*, alone: bool, own_pid: int = 0) -> bytes:
    """The filter's code. `own_pid` is the one process that may be signalled under `alone`."""
    steps = [
        _step(_LOAD, 4),
        _step(_EQUAL, _ARCH_X86_64, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, 0),
        _step(_AT_LEAST, _X32, 0, 1),
        _step(_RETURN, _ERROR | errno.ENOSYS),
    ]
    for name, rule in _rules(alone, own_pid).items():
        block = _block(rule)
        steps += [_step(_EQUAL, NUMBERS[name], 0, len(block)), *block]
    for name in ALLOWED if alone else ALLOWED + COMPANY:
        steps += [_step(_EQUAL, NUMBERS[name], 0, 1), _step(_RETURN, _ALLOW)]
    steps += [
        _step(_AT_LEAST, _FIRST_YOUNG, 0, 1),
        _step(_RETURN, _ERROR | errno.ENOSYS),
        _step(_RETURN, _ERROR | errno.EPERM),
    ]
    return b"".join(steps)
