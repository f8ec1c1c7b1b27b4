"""What a process and all its descendants use, read from /proc.

The kernel limits each process by itself; their sum is looked at here, a few dozen times a second.
"""

from __future__ import annotations

import os

_TICKS = os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> list[int]:
    """All below `root`. Empty where the kernel does not list children."""
    found: list[int] = []
    open_ends = [root]
    while open_ends:
        pid = open_ends.pop()
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                open_ends += [int(child) for child in _read(f"/proc/{pid}/task/{task}/children").split()]
        except OSError:  # ended meanwhile
            pass
        found.append(pid)
    return found[1:]


def measure(pids: list[int]) -> tuple[int, float, int]:
    """Processes and threads; seconds of CPU; bytes of memory in use and not backed by files, where pages that
    several processes share count in each."""
    tasks, ticks, size = 0, 0, 0
    for pid in pids:
        try:
            fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            memory = _sum(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:", "VmSwap:"))
        except OSError:
            continue
        tasks += int(fields[17])
        ticks += sum(map(int, fields[11:15]))  # its own and those of children it waited for
        size += memory
    return tasks, ticks / _TICKS, size


def shared_memory_once(pids: list[int]) -> int | None:
    """The memory of `measure` with shared pages counted once; slower. None where the kernel does not say."""
    total = 0
    for pid in pids:
        try:
            total += _sum(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:", "SwapPss:"))
        except (FileNotFoundError, ProcessLookupError):
            if os.path.exists(f"/proc/{pid}/stat") and not os.path.exists(f"/proc/{pid}/smaps_rollup"):
                return None
        except OSError:
            return None
    return total


def folder_use(folder: str) -> tuple[int, int]:
    """Bytes on the disk and number of files below `folder`."""
    size = count = 0
    for place, _, names in os.walk(folder):
        for name in names:
            count += 1
            try:
                size += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                pass
    return size, count


def files_in(file_system: str) -> int:
    """Files and folders that a file system holds; 0 where it cannot be looked at."""
    try:
        use = os.statvfs(file_system)
    except OSError:
        return 0
    return use.f_files - use.f_ffree


def _sum(path: str, names: tuple[str, ...]) -> int:
    lines = _read(path).splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(names))


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
