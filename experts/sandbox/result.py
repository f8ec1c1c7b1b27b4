"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal[
    "passed",
    "failed",
    "timeout",
    "cpu_limit",
    "memory_limit",
    "output_limit",
    "process_limit",
    "refused",
]


@dataclass(frozen=True)
class SandboxResult:
    """status: `passed` is exit code 0, a limit's name is the limit that was met. `refused` says nothing about the
    program: it did not run, or the machine kept it from an end.

    returncode: negative for a signal; None when refused or stopped by us. stdout, stderr: at most
    `limits.output_bytes` each, undecodable bytes replaced. seconds: wall time of the program alone, without setting
    up. isolation: `bubblewrap`, `namespaces`, `landlock` or `none`. detail: one sentence on everything but `passed`.
    """

    status: Status
    returncode: int | None = None
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    isolation: str = "none"
    detail: str = ""

    @property
    def passed(self) -> bool:
        return self.status == "passed"
