"""Isolation `namespaces`: user, mount, network, process, IPC, name and cgroup namespaces of its own.

    launcher -> init (process 1 of the new namespaces) -> the program (user nobody, no capabilities)

When init ends, by itself or by SIGKILL, the kernel ends every process of the namespace, however it was started.
"""

from __future__ import annotations

import errno
import os

from experts.sandbox import inside, linux, seccomp
from experts.sandbox.child import Pipes, end_first, never_return
from experts.sandbox.layout import CONFIG, ENVIRONMENT, PYTHON, SCRATCH, SITE

NOBODY = 65534
_NEW = "/tmp"  # any folder that surely exists; the new root is mounted over it
_RESTRICTED = linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV


def start(spec: dict, pipes: Pipes) -> int:
    """The id of init. Raises OSError where namespaces are forbidden."""
    go, let_go = os.pipe()
    init = linux.clone(linux.ALL_NAMESPACES)
    if init == 0:
        never_return(pipes.report, lambda: _init(spec, pipes, go, let_go))
    os.close(go)
    try:
        _map_users(init)
        os.write(let_go, b"g")
    except OSError as error:
        os.kill(init, linux.SIGKILL)
        os.waitpid(init, 0)
        raise OSError(error.errno, f"mapping users: {os.strerror(error.errno or 0)}") from error
    finally:
        os.close(let_go)
    return init


def _map_users(init: int) -> None:
    """Nobody inside is nobody outside where we may say so (as root), else ourselves: limits on processes do not
    hold for root, and files that others may not read stay unreadable."""
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        _write(f"/proc/{init}/setgroups", "deny")
    for kind, number in (("gid", gid), ("uid", uid)):
        own = f"{NOBODY} {number} 1\n"
        both = f"{number} {number} 1\n{NOBODY} {NOBODY} 1\n"
        _write(f"/proc/{init}/{kind}_map", own if uid else both)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _init(spec: dict, pipes: Pipes, go: int, let_go: int) -> None:
    os.close(let_go)
    linux.die_with_parent()
    if os.read(go, 1) != b"g":  # the launcher is gone
        os._exit(125)
    end_first()
    linux.hide_from_debuggers()
    os.setsid()
    _build_view(spec)
    report = pipes.attach()
    program = os.fork()
    if program == 0:
        never_return(report, lambda: _program(spec, report))
    os.closerange(0, 3)
    _reap(program, report)


def _reap(program: int, report: int) -> None:
    while True:
        child, status = os.wait()
        if child == program:
            os.write(report, f"S{status}\n".encode())
            os._exit(0)


def _program(spec: dict, report: int) -> None:
    os.setsid()
    if os.getuid() != NOBODY:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    os.umask(0o022)
    os.chdir(SCRATCH)
    inside.prepare(spec)
    linux.drop_capabilities()
    linux.no_new_privileges()
    if linux.X86_64:
        linux.filter_calls(seccomp.program(alone=False))
    inside.become_program(spec, report)


def places(spec: dict) -> list[tuple[str, str]]:
    """(path here, path inside) of all that is read."""
    packages = [(path, f"{ENVIRONMENT}/{SITE}/{os.path.basename(path)}") for path in spec["packages"]]
    return [(path, path) for path in spec["reads"]] + packages


def _build_view(spec: dict) -> None:
    """A root of memory that holds what the interpreter reads, read-only, and the scratch folder."""
    linux.mount("", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    # Opened before the new root hides them, and in here: only mounts of this namespace can be bound.
    sources = [(os.open(source, os.O_PATH), target) for source, target in places(spec)]
    devices = [(os.open(device, os.O_PATH), device) for device in spec["devices"]]
    linux.mount("tmpfs", _NEW, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=0755,size=1m,nr_inodes=4096")
    os.umask(0o022)
    for descriptor, target in sources:
        _bind(descriptor, _NEW + target, _RESTRICTED)
    for descriptor, target in devices:
        _bind(descriptor, _NEW + target, linux.MS_RDONLY | linux.MS_NOSUID)
    for target, path in spec["links"]:
        os.symlink(target, _NEW + path)
    os.makedirs(f"{_NEW}{ENVIRONMENT}/{os.path.dirname(PYTHON)}", exist_ok=True)
    os.symlink(spec["executable"], f"{_NEW}{ENVIRONMENT}/{PYTHON}")
    with open(f"{_NEW}{ENVIRONMENT}/{CONFIG}", "w") as file:
        file.write(spec["config"])
    os.mkdir(_NEW + SCRATCH)
    own = f"size={spec['scratch_bytes']},nr_inodes=4096,mode=0700,uid={NOBODY},gid={NOBODY}"
    linux.mount("tmpfs", _NEW + SCRATCH, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, own)
    os.symlink(SCRATCH, _NEW + "/tmp")
    os.chdir(_NEW)
    linux.pivot_root(".", ".")
    linux.unmount_lazily(".")
    os.chdir("/")
    linux.mount("", "/", "", linux.MS_REMOUNT | linux.MS_BIND | _RESTRICTED)


def _bind(descriptor: int, target: str, flags: int) -> None:
    source = f"/proc/self/fd/{descriptor}"
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    linux.mount(source, target, "", linux.MS_BIND | linux.MS_REC)
    try:
        linux.restrict_mounts(target, flags)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        _restrict_before_linux_5_12(source, target, flags)


def _restrict_before_linux_5_12(source: str, target: str, flags: int) -> None:
    """One mount at a time; what lies mounted below it would stay writable, so it must not be there."""
    linux.unmount_lazily(target)
    linux.mount(source, target, "", linux.MS_BIND)  # fails over mounts below
    kept = os.statvfs(target).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_RELATIME)
    times = {os.ST_NOATIME: 1024, os.ST_NODIRATIME: 2048, os.ST_RELATIME: 1 << 21}
    kept = kept & 0xF | sum(flag for bit, flag in times.items() if kept & bit)
    linux.mount("", target, "", linux.MS_REMOUNT | linux.MS_BIND | flags | kept)
