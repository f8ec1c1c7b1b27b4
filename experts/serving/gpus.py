"""`Gpu`: the devices that models are placed on, as this machine reports them or as a plan assumes them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from registry.errors import UserFault

_QUERY = ("--query-gpu=index,memory.total,memory.free,name", "--format=csv,noheader,nounits")
_PLAN = "plan for other machines with --dry-run --gpus 0,1,2,3 --gpu-memory 80, or serve with --cpu"


@dataclass(frozen=True)
class Gpu:
    """One device; memory in GiB. `index` is the number that CUDA_VISIBLE_DEVICES takes; None is the host."""

    index: int | None
    total_gib: float
    free_gib: float
    name: str = ""

    @property
    def label(self) -> str:
        """How messages call it."""
        return "CPU" if self.index is None else f"GPU {self.index}"


def parse_indices(text: str, name: str = "--gpus") -> tuple[int, ...]:
    """`0,1,2` as numbers. Raises UserFault for anything else, and for a number that comes twice. `name`: the option
    or variable that says it."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 4 for word in words):
        raise UserFault(
            f"{name} takes numbers such as 0,1,2,3, not {text!r}",
            where=name,
            fix="write the numbers that nvidia-smi shows, with commas between them; without any all GPUs are used",
        )
    indices = tuple(map(int, words))
    if len(set(indices)) < len(indices):
        raise UserFault(
            f"{name} names a GPU twice: {text}",
            where=name,
            fix=f"write each number once: {','.join(map(str, dict.fromkeys(indices)))}",
        )
    return indices


def planned_gpus(indices: Sequence[int], memory_gib: float) -> tuple[Gpu, ...]:
    """Empty GPUs of that size, for a plan."""
    return tuple(Gpu(index, memory_gib, memory_gib, "planned") for index in indices)


def found_gpus(indices: Sequence[int] | None = None) -> tuple[Gpu, ...]:
    """This machine's GPUs, or those of them with these numbers. Without numbers CUDA_VISIBLE_DEVICES is kept.
    Raises UserFault when there is none, or not that one."""
    there = {gpu.index: gpu for gpu in _ask_driver() if gpu.index is not None}
    if indices is None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        if visible is not None and not visible.replace(",", "").isdecimal():
            raise UserFault(
                f"CUDA_VISIBLE_DEVICES is {visible!r}, not numbers such as 0,1",
                fix="name the GPUs with --gpus, or set the variable to their numbers",
            )
        indices = sorted(there) if visible is None else parse_indices(visible, "CUDA_VISIBLE_DEVICES")
    absent = [index for index in indices if index not in there]
    if absent:
        raise UserFault(
            f"GPU {', '.join(map(str, absent))} is not in this machine; it has {', '.join(map(str, there))}",
            fix=f"name some of these with --gpus; {_PLAN}",
        )
    return tuple(there[index] for index in indices)


def host() -> tuple[Gpu, ...]:
    """The machine's own memory as the one device."""
    sizes = {}
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        sizes[name] = int(rest.split()[0]) / 2**20
    return (Gpu(None, sizes["MemTotal"], sizes["MemAvailable"], "host memory"),)


def _ask_driver() -> list[Gpu]:
    program = shutil.which("nvidia-smi")
    if program is None:
        raise UserFault("no GPU is found: this machine has no nvidia-smi", fix=_PLAN)
    try:
        reply = subprocess.run(
            [program, *_QUERY], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserFault(f"nvidia-smi does not answer: {error}", fix=_PLAN) from None
    gpus = []
    for line in reply.stdout.splitlines()[:1024]:
        cells = [cell.strip() for cell in line.split(",", 3)]
        if len(cells) == 4 and all(cell.isdecimal() for cell in cells[:3]):
            gpus.append(Gpu(int(cells[0]), int(cells[1]) / 1024, int(cells[2]) / 1024, cells[3][:80]))
    if not gpus:
        said = " ".join((reply.stderr or reply.stdout).split())[:300]
        raise UserFault(f"nvidia-smi names no GPU: {said or 'it says nothing'}", fix=_PLAN)
    return gpus
