"""A forked process of ours that is to become the program: its descriptors, and its way out when something fails."""

from __future__ import annotations

import os

from experts.sandbox.inside import FAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


class Pipes:
    """Descriptors: the program's three, and `report` for word from us about the set-up and the end."""

    def __init__(self, stdin: int, stdout: int, stderr: int, report: int) -> None:
        self.stdin, self.stdout, self.stderr, self.report = stdin, stdout, stderr, report

    def attach(self) -> int:
        """Make them 0, 1 and 2 and close all others but the report; gives the report."""
        for number, descriptor in enumerate((self.stdin, self.stdout, self.stderr)):
            os.dup2(descriptor, number)
        os.closerange(3, self.report)
        os.closerange(self.report + 1, 1 << 16)
        return self.report


def end_first() -> None:
    """When the machine runs out of memory, let the kernel take this process before any of ours."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def never_return(report: int, body: Callable[[], object]) -> NoReturn:
    """Run `body`, which should not come back. A fault is reported; the launcher's code is never returned to."""
    try:
        body()
    except BaseException as error:
        os.write(report, FAULT + f"{error}".encode("utf-8", "replace")[:2000])
    finally:
        os._exit(125)
