"""The last steps before the program, taken where it will run.

Bubblewrap's inner interpreter gets this file as text, for nothing of ours is to be seen in there: it imports the
standard library alone.
"""

from __future__ import annotations

import marshal
import os
import resource
import sys

READY, FAULT = b"R", b"E"


def prepare(spec: dict) -> None:
    """Files into the current folder, then limits on this process."""
    for name, content in spec["files"].items():
        folder = os.path.dirname(name)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(name, "xb") as file:
            file.write(content)
    for kind, value in spec["rlimits"]:
        most = resource.getrlimit(kind)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (value, value))


def become_program(spec: dict, report: int) -> None:
    """Say so, and turn into the program; the report closes by itself then."""
    os.set_inheritable(report, False)
    os.write(report, READY)
    os.execve(spec["command"][0], spec["command"], spec["env"])


def main() -> None:
    report, given = int(sys.argv[1]), int(sys.argv[2])
    try:
        with open(given, "rb") as file:
            spec = marshal.load(file)
        prepare(spec)
        become_program(spec, report)
    except OSError as error:
        os.write(report, FAULT + str(error).encode())
    os._exit(125)


if __name__ == "__main__":
    main()
