"""Programs that want too much: time, memory, processes, output, files. Each is ended, with all that it started."""

from __future__ import annotations

import time

import pytest
from sandbox_doubles import MIB, attack


@pytest.fixture
def company(isolation: str) -> str:
    """Isolations under which a program may start processes."""
    if isolation == "landlock":
        pytest.skip("landlock allows one process with one thread")
    return isolation


def test_sleeping_beyond_the_wall_limit(isolation: str) -> None:
    begun = time.monotonic()
    result = attack("import time\nprint('here', flush=True)\ntime.sleep(60)", isolation, wall_s=3)
    assert (result.status, result.returncode, result.stdout) == ("timeout", None, "here\n")
    assert 3 <= result.seconds < 10
    assert time.monotonic() - begun < 30
    assert result.detail == "ran longer than 3 s"


def test_ignoring_every_signal(isolation: str) -> None:
    source = """
import signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
print("deaf", flush=True)
while True:
    time.sleep(1)
"""
    result = attack(source, isolation, wall_s=3)
    assert (result.status, result.stdout) == ("timeout", "deaf\n")


def test_computing_without_end(isolation: str) -> None:
    source = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    result = attack(source, isolation, cpu_s=0.5, wall_s=60)  # a busy machine gives half a second of CPU late
    assert (result.status, result.returncode) == ("cpu_limit", None)
    assert result.detail == "computed longer than 0.5 s"


def test_computing_in_several_processes_adds_up(company: str) -> None:
    source = "import os\nfor _ in range(3):\n    os.fork() or os.setsid()\nwhile True: pass"
    assert attack(source, company, cpu_s=1, wall_s=60, processes=12).status == "cpu_limit"


def test_one_huge_piece_of_memory(isolation: str) -> None:
    result = attack("x = bytearray(1 << 30)", isolation)
    assert (result.status, result.returncode) == ("memory_limit", 1)


def test_memory_that_grows_while_errors_are_swallowed(isolation: str) -> None:
    source = """
kept = []
while True:
    try:
        kept.append(bytearray(1 << 20))
    except MemoryError:
        print(80 < len(kept) < 128)
        break
"""
    result = attack(source, isolation)
    assert (result.status, result.stdout) == ("passed", "True\n")


def test_memory_of_several_processes_adds_up(company: str) -> None:
    source = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(b"x") * (50 << 20)
        time.sleep(60)
time.sleep(60)
"""
    result = attack(source, company)
    assert result.status == "memory_limit"
    assert result.detail == "all its processes used more than 134217728 bytes of memory"


def test_memory_shared_by_several_processes_counts_once(company: str) -> None:
    source = """
import os, time
kept = bytearray(b"x") * (50 << 20)
children = [os.fork() for _ in range(3)]
time.sleep(0.5)
"""
    assert attack(source, company).status == "passed"


FORKS = """
import os, time
made = 0
try:
    for _ in range(5000):
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except OSError:
    pass
print(made)
"""


def test_a_fork_bomb_gets_no_further_than_the_limit(isolation: str) -> None:
    result = attack(FORKS, isolation, processes=8)
    if isolation == "bubblewrap" and result.status == "process_limit":  # as root the sum alone is limited
        return
    assert (result.status, result.stdout) == ("passed", "7\n" if isolation != "landlock" else "0\n")


def test_a_fork_bomb_that_goes_on_is_ended(isolation: str) -> None:
    source = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
    assert attack(source, isolation, wall_s=1).status in ("timeout", "process_limit")


def test_threads_count_as_processes(isolation: str) -> None:
    source = """
import threading
made = 0
hold = threading.Event()
try:
    for _ in range(100):
        threading.Thread(target=hold.wait, args=(2,), daemon=True).start()
        made += 1
except RuntimeError:
    print(made)
"""
    result = attack(source, isolation, processes=8, memory_bytes=2048 * MIB)  # stacks take address space
    if isolation == "bubblewrap" and result.status == "process_limit":
        return
    assert (result.status, result.stdout) == ("passed", "7\n" if isolation != "landlock" else "0\n")


@pytest.mark.parametrize(("stream", "name"), [(1, "out"), (2, "err")])
def test_printing_without_end(isolation: str, stream: int, name: str) -> None:
    result = attack(f"import os\nwhile True:\n    os.write({stream}, b'yes\\n' * 1000)", isolation, output_bytes=10_000)
    assert (result.status, result.returncode) == ("output_limit", None)
    assert result.detail == f"wrote more than 10000 bytes to standard {name}"
    assert (result.stdout if stream == 1 else result.stderr) == "yes\n" * 2500
    assert (result.stderr if stream == 1 else result.stdout) == ""


def test_as_much_output_as_allowed_is_kept_whole(isolation: str) -> None:
    result = attack("print('x' * 9_999)", isolation, output_bytes=10_000)
    assert (result.status, len(result.stdout)) == ("passed", 10_000)
    assert attack("print('x' * 10_000)", isolation, output_bytes=10_000).status == "output_limit"


def test_one_huge_file(isolation: str) -> None:
    source = "file = open('x', 'wb')\nfor _ in range(64):\n    file.write(bytes(1 << 20))\n    file.flush()"
    result = attack(source, isolation, scratch_bytes=4 * MIB)
    assert result.status in ("failed", "output_limit")
    assert "ran longer" not in result.detail


def test_many_files(isolation: str) -> None:
    source = """
try:
    for number in range(10**9):
        with open(f"f{number}", "w") as file:
            file.write("x" * 4096)
except OSError:
    print(number < 300)
"""
    result = attack(source, isolation, scratch_bytes=MIB)
    assert (result.status, result.stdout) in [("passed", "True\n"), ("output_limit", "")]


def test_many_empty_files(isolation: str) -> None:
    source = """
import time
try:
    for number in range(10**9):
        open(f"f{number}", "w").close()
except OSError:
    print(4000 < number < 4100)
"""
    result = attack(source, isolation, wall_s=60, cpu_s=60)
    assert (result.status, result.stdout) in [("passed", "True\n"), ("output_limit", "")]


def test_closing_and_copying_descriptors(isolation: str) -> None:
    source = """
import os, time
others = 0
for number in range(3, 64):
    try:
        os.fstat(number)
        others += 1
    except OSError:
        pass
print(others, flush=True)
for number in range(3, 64):
    os.dup2(1, number)
os.closerange(0, 3)
time.sleep(60)
"""
    result = attack(source, isolation, wall_s=3)
    assert (result.status, result.stdout) == ("timeout", "0\n")


def test_a_daemon_ends_with_the_program(company: str) -> None:
    source = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        time.sleep(60)
    os._exit(0)
os.wait()
print("done")
"""
    result = attack(source, company)
    assert (result.status, result.stdout) == ("passed", "done\n")
    assert result.seconds < 10
