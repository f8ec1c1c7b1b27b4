"""What a run may use."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from registry.errors import UserFault

MIB = 1024 * 1024


@dataclass(frozen=True)
class SandboxLimits:
    """Limits of one run. Raises UserFault for a value that no run could have.

    wall_s, cpu_s: seconds, the latter over all its processes. memory_bytes: of each process (address space) and
    of all of them together (memory in use). processes: processes and threads at a time. output_bytes: of standard
    output and of standard error, each. scratch_bytes: all files together, the given ones included. open_files: of
    each process.
    """

    wall_s: float = 10.0
    cpu_s: float = 10.0
    memory_bytes: int = 512 * MIB
    processes: int = 16
    output_bytes: int = 64 * 1024
    scratch_bytes: int = 16 * MIB
    open_files: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            value, (least, most) = getattr(self, field.name), _RANGES[field.name]
            whole = field.type == "int"
            number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or not least <= value <= most:
                kind = "a whole number" if whole else "a number"
                raise UserFault(f"{field.name} must be {kind} from {least} to {most}, not {value!r}", where="sandbox")


# The lower ends are what an interpreter needs to start.
_RANGES: dict[str, tuple[float, float]] = {
    "wall_s": (0.01, 3600),
    "cpu_s": (0.01, 3600),
    "memory_bytes": (64 * MIB, 1024 * 1024 * MIB),
    "processes": (1, 1024),
    "output_bytes": (1, 16 * MIB),
    "scratch_bytes": (64 * 1024, 4096 * MIB),
    "open_files": (16, 1024),
}
