"""System calls that Python's library lacks. Each raises OSError with the call's name."""

from __future__ import annotations

import ctypes
import errno
import os

# PyDLL keeps the interpreter's lock: after `clone` the child goes on inside one of these calls.
_LIBC = ctypes.PyDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long

SIGCHLD, SIGKILL = 17, 9  # the module `signal` takes long to import

_MACHINE = os.uname().machine
X86_64 = _MACHINE == "x86_64"

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
ALL_NAMESPACES = (
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
)

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 4, 22
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38

# Numbers of calls younger than 2011 are the same on x86-64 and arm64 from 424 on.
_MOUNT_SETATTR, _LANDLOCK = 442, 444
_OLD = {"x86_64": {"clone": 56, "pivot_root": 155}, "aarch64": {"clone": 220, "pivot_root": 41}}


def _check(name: str, result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def _number(name: str) -> int:
    numbers = _OLD.get(_MACHINE)
    if numbers is None:
        raise OSError(errno.ENOSYS, f"{name}: not known on {_MACHINE}")
    return numbers[name]


def _syscall(name: str, number: int, *args: object) -> int:
    # Variadic: without a width each int would be passed as 32 bits and NULL as garbage above them.
    wide = [
        ctypes.c_long(arg) if isinstance(arg, int) else ctypes.c_void_p(None) if arg is None else arg for arg in args
    ]
    return _check(name, _LIBC.syscall(ctypes.c_long(number), *wide))


def clone(flags: int) -> int:
    """A fork into new namespaces: the child's id, 0 in the child."""
    return _syscall("clone", _number("clone"), flags | SIGCHLD, 0, 0, 0, 0)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    words = [os.fsencode(word) or None for word in (source, target, kind)]
    data = os.fsencode(options) or None
    _check(f"mount {target}", _LIBC.mount(*words, ctypes.c_ulong(flags), data))


def unmount_lazily(target: str) -> None:
    _check(f"umount {target}", _LIBC.umount2(os.fsencode(target), MNT_DETACH))


def pivot_root(new: str, old: str) -> None:
    _syscall("pivot_root", _number("pivot_root"), os.fsencode(new), os.fsencode(old))


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd")]


def restrict_mounts(path: str, flags: int) -> None:
    """Read-only, no set-user-id, no devices: for a mount and all below it (Linux 5.12)."""
    attr = _MountAttr(flags, 0, 0, 0)  # the bits are those of MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC
    at_fdcwd, at_recursive, size = -100, 0x8000, ctypes.sizeof(attr)
    _syscall("mount_setattr", _MOUNT_SETATTR, at_fdcwd, os.fsencode(path), at_recursive, ctypes.byref(attr), size)


def prctl(name: str, option: int, value: object) -> None:
    wide = ctypes.c_ulong(value) if isinstance(value, int) else value
    zero = ctypes.c_ulong(0)
    _check(name, _LIBC.prctl(option, wide, zero, zero, zero))


def die_with_parent() -> None:
    prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, SIGKILL)


def adopt_orphans() -> None:
    """Descendants whose parent ends become children of this process."""
    prctl("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def hide_from_debuggers() -> None:
    prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, 0)


def no_new_privileges() -> None:
    prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def filter_calls(code: bytes) -> None:
    """Install a seccomp filter for this process and all that it starts."""
    program = _FilterProgram(len(code) // 8, code)
    zero = ctypes.c_ulong(0)
    _check("seccomp", _LIBC.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(program), zero, zero))


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def drop_capabilities() -> None:
    """Give up all capabilities; with `no_new_privileges` for good."""
    header = _CapHeader(0x20080522, 0)
    _check("capset", _LIBC.capset(ctypes.byref(header), (ctypes.c_uint32 * 6)()))


class RulesetAttr(ctypes.Structure):
    """Landlock: what is governed; nothing of it is allowed but by a rule."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scopes")]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def landlock_version() -> int:
    """1 or more. Raises OSError where the kernel has none or it is switched off."""
    return _syscall("landlock", _LANDLOCK, None, 0, 1)


def landlock_ruleset(attr: RulesetAttr, size: int) -> int:
    return _syscall("landlock_create_ruleset", _LANDLOCK, ctypes.byref(attr), size, 0)


def landlock_allow(ruleset: int, folder: int, rights: int) -> None:
    rule = _PathRule(rights, folder)
    _syscall("landlock_add_rule", _LANDLOCK + 1, ruleset, 1, ctypes.byref(rule), 0)


def landlock_restrict(ruleset: int) -> None:
    _syscall("landlock_restrict_self", _LANDLOCK + 2, ruleset, 0)
