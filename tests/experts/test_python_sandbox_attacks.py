"""Programs that want out: to files, secrets, the network, other processes, more rights."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_doubles import attack, carriers, wait_until

from experts.sandbox import linux
from experts.sandbox.run import run_python

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def isolation(held_isolation: str) -> str:
    """Without a scratch folder of its own: other users must be able to reach what lies outside."""
    return held_isolation


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that every user may read and write, with a file in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "secret").write_text("the secret")
        (folder / "secret").chmod(0o666)
        yield folder


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


TRY = """
import os, sys
def tried(action):
    try:
        return action()
    except (OSError, ImportError) as error:
        return None
"""


def test_files_elsewhere_cannot_be_read(isolation: str, outside: Path) -> None:
    home = os.path.expanduser("~")
    files = [outside / "secret", ROOT / "pyproject.toml", ROOT / "experts" / "sandbox" / "run.py"]
    files += ["/etc/shadow", "/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/1/environ", "/proc/version"]
    folders = [home, outside, ROOT, "/etc", "/proc", "/sys", "/var", "/home"]
    source = f"""{TRY}
files, folders = {list(map(str, files))!r}, {list(map(str, folders))!r}
print([path for path in files if tried(lambda: open(path).read(1)) is not None])
print([path for path in folders if "secret" in (tried(lambda: os.listdir(path)) or [])])
print(tried(lambda: len(os.listdir({str(ROOT)!r}))), tried(lambda: os.listdir("/proc")))
"""
    result = attack(source, isolation)
    assert (result.stdout, result.stderr) == ("[]\n[]\nNone None\n", "")


def test_links_do_not_lead_out(isolation: str, outside: Path) -> None:
    source = f"""{TRY}
tried(lambda: os.symlink({str(outside)!r}, "there"))
tried(lambda: os.link({str(outside / "secret")!r}, "hard"))
print(tried(lambda: open("there/secret").read()), tried(lambda: open("hard").read()))
print(tried(lambda: open("there/new", "w")), tried(lambda: open("../" * 20 + {str(outside / "secret")[1:]!r}).read()))
"""
    result = attack(source, isolation)
    assert (result.stdout, result.stderr) == ("None None\nNone None\n", "")
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]


def test_the_environment_is_not_ours(isolation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAESTRO_TEST_TOKEN", "the secret")
    result = attack("import os; print(sorted(os.environ.values()), os.environ.get('MAESTRO_TEST_TOKEN'))", isolation)
    assert result.status == "passed"
    assert "the secret" not in result.stdout
    assert result.stdout.endswith("] None\n")


def test_nothing_elsewhere_is_written_or_changed(isolation: str, outside: Path) -> None:
    secret = outside / "secret"
    before = (secret.stat().st_mode, secret.stat().st_mtime_ns)
    source = f"""{TRY}
secret, outside = {str(secret)!r}, {str(outside)!r}
library = os.__file__
actions = dict(
    create=lambda: open(outside + "/new", "w"),
    append=lambda: open(secret, "a"),
    empty=lambda: os.open(secret, os.O_RDONLY | os.O_TRUNC),
    empty_library=lambda: os.open(library, os.O_RDONLY | os.O_TRUNC),
    truncate=lambda: os.truncate(secret, 0) or 1,
    remove=lambda: os.remove(secret) or 1,
    mode=lambda: os.chmod(secret, 0o777) or 1,
    library_mode=lambda: os.chmod(library, 0o777) or 1,
    times=lambda: os.utime(secret) or 1,
    owner=lambda: os.chown(secret, 12345, 12345) or 1,
    attribute=lambda: os.setxattr(secret, "user.x", b"1") or 1,
    folder=lambda: os.mkdir(outside + "/folder") or 1,
    rename=lambda: os.rename(secret, outside + "/renamed") or 1,
    root=lambda: open("/new", "w"),
    library_file=lambda: open(os.path.dirname(library) + "/new.py", "w"),
    shared_memory=lambda: open("/dev/shm/new", "w"),
    pipe=lambda: os.mkfifo(outside + "/pipe") or 1,
)
print([name for name, action in actions.items() if tried(action) is not None])
"""
    result = attack(source, isolation)
    assert (result.stdout, result.stderr) == ("[]\n", "")
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert (secret.stat().st_mode, secret.stat().st_mtime_ns) == before
    assert secret.read_text() == "the secret"


def test_the_network_is_out_of_reach(isolation: str, outside: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(outside / "socket"))
        (outside / "socket").chmod(0o777)
        unix.listen()
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind(f"\0{outside}")
        abstract.listen()
        source = f"""{TRY}
import socket
def unix(address):
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect(address) or 1
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        return client.sendto(b"x", ("127.0.0.1", {tcp.getsockname()[1]}))
print(
    tried(lambda: socket.create_connection({tcp.getsockname()!r}, 1)),
    tried(lambda: socket.getaddrinfo("example.org", 80)),
    tried(udp),
    tried(lambda: unix({str(outside / "socket")!r})),
    tried(lambda: unix("\\0" + {str(outside)!r})),
)
"""
        result = attack(source, isolation)
        assert (result.stdout, result.stderr) == ("None None None None None\n", "")
        for listener in (tcp, unix, abstract):
            listener.settimeout(0.02)
            with pytest.raises(TimeoutError):
                listener.accept()
        abstract.close()


def test_other_processes_are_neither_seen_nor_signalled(isolation: str, victim: subprocess.Popen[bytes]) -> None:
    source = f"""{TRY}
import fcntl, signal
for target in ({victim.pid}, -{victim.pid}, {os.getpid()}, os.getppid(), 1, -1):
    tried(lambda: os.kill(target, signal.SIGKILL))
    tried(lambda: os.kill(target, signal.SIGSTOP))
tried(lambda: signal.pidfd_send_signal(os.pidfd_open({victim.pid}), signal.SIGKILL))
for command in (fcntl.F_SETOWN, 10):
    print(tried(lambda: fcntl.fcntl(0, command, {victim.pid})))
print(tried(lambda: os.setpriority(os.PRIO_PROCESS, {victim.pid}, 19) or 1), tried(lambda: os.listdir("/proc")))
print("still here")
"""
    result = attack(source, isolation, wall_s=10)
    assert (result.status, result.stdout) == ("passed", "None\nNone\nNone None\nstill here\n")
    assert victim.poll() is None
    assert Path(f"/proc/{victim.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
    assert os.getpriority(os.PRIO_PROCESS, victim.pid) == os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.skipif(not linux.X86_64, reason="the numbers of system calls are those of x86-64")
def test_calls_for_more_rights_fail(isolation: str, victim: subprocess.Popen[bytes]) -> None:
    source = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
calls = dict(
    unshare=(272, 0x10000000),
    clone_new_user=(56, 0x10000000 | 17, 0, 0, 0, 0),
    clone_new_net=(56, 0x40000000 | 17, 0, 0, 0, 0),
    clone3=(435, 0, 0),
    ptrace=(101, 16, {victim.pid}, 0, 0),
    read_memory=(310, {victim.pid}, 0, 0, 0, 0, 0),
    mount=(165, 0, 0, 0, 0, 0),
    chroot=(161, b"/"),
    keys=(250, 0, -3, 0),
    io_uring=(425, 8, 0),
    bpf=(321, 0, 0, 0),
    shared_memory=(29, 1, 4096, 0o1777),
    memory_file=(319, b"x", 0),
    message_queue=(240, b"x", 0o102, 0o777, 0),
    pidfd=(434, {victim.pid}, 0),
    set_uid=(105, 0),
    death_signal=(157, 1, 0, 0, 0, 0),
    limits_of_others=(302, {victim.pid}, 7, 0, 0),
    socket_by_32_bit_number=(41 | 0x40000000, 1, 1, 0),
    datagrams=(53, 1, 2, 0, (ctypes.c_int * 2)()),
)
for name, (number, *args) in calls.items():
    wide = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    if libc.syscall(ctypes.c_long(number), *wide) != -1 or ctypes.get_errno() not in (1, 38):
        print(name, ctypes.get_errno())
status = dict(zip(("real", "effective", "saved"), os.getresuid()))
print("end")
"""
    result = attack(source, isolation)
    assert (result.status, result.stdout, result.stderr) == ("passed", "end\n", "")


@pytest.mark.skipif(not linux.X86_64, reason="the numbers of system calls are those of x86-64")
def test_the_program_has_no_capabilities_and_gets_none(isolation: str) -> None:
    source = """
import ctypes
libc = ctypes.CDLL(None)
class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
print(libc.prctl(39, 0, 0, 0, 0))
"""
    assert attack(source, isolation).stdout == "1\n"
    assert attack("import os; os.setuid(0)", isolation).status == "failed" or isolation == "landlock"


def test_a_raised_limit_stays_where_it_is(isolation: str) -> None:
    source = """
import resource
for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
    try:
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("raised", kind)
    except (ValueError, OSError):
        pass
print("end")
"""
    assert attack(source, isolation).stdout == "end\n"


CALLER = """
import sys
sys.path.insert(0, sys.argv[1])
from experts.sandbox.run import run_python
run_python("import time; time.sleep(60)", files={sys.argv[3]: b""}, isolation=sys.argv[2])
"""


def test_when_the_caller_is_killed_nothing_is_left(isolation: str, tmp_path: Path) -> None:
    mark = f"mark-{os.urandom(8).hex()}"
    command = [sys.executable, "-c", CALLER, str(ROOT), isolation, mark]
    caller = subprocess.Popen(command, env=os.environ | {"TMPDIR": str(tmp_path)})
    assert wait_until(lambda: carriers(mark))
    os.kill(caller.pid, signal.SIGKILL)
    caller.wait()
    assert wait_until(lambda: not carriers(mark))
    assert wait_until(lambda: list(tmp_path.iterdir()) == [])


def test_when_the_launcher_is_killed_nothing_is_left(isolation: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mark = f"mark-{os.urandom(8).hex()}"
    results = []
    run = threading.Thread(
        target=lambda: results.append(run_python("import time; time.sleep(60)", files={mark: b""}, isolation=isolation))
    )
    run.start()
    assert wait_until(lambda: carriers(mark))
    launchers = [pid for pid in _children() if b"experts.sandbox.launcher" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(launchers) == 1
    os.kill(launchers[0], signal.SIGKILL)
    run.join(20)
    assert [(result.status, result.returncode) for result in results] == [("refused", None)]
    assert results[0].detail.startswith("could not be set up: the launcher ended with -9")
    assert wait_until(lambda: not carriers(mark))
    assert list(tmp_path.iterdir()) == []


def _children() -> list[int]:
    tasks = os.listdir("/proc/self/task")
    return [int(pid) for task in tasks for pid in _read(f"/proc/self/task/{task}/children").split()]


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
