"""Whether a node sees the same folder as the one that started the evaluation.

The one idea: a secret is written into the folder, and a node that can read it there sees that very folder; a folder of
the same name on a disk of its own does not hold it.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

from registry.errors import UserFault

WAIT_S = 15.0
"""A network file system may show a new file late."""


class SharedFolder:
    """A folder with a secret in it; made by the one that starts, and passed to the nodes."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError where the folder cannot be written."""
        self.path = folder
        self._secret = secrets.token_hex(16)
        self._file = folder / f".seen-{secrets.token_hex(4)}"
        folder.mkdir(parents=True, exist_ok=True)
        self._file.write_text(self._secret, encoding="ascii")

    def check(self, *, wait_s: float = WAIT_S, sleep: Callable[[float], None] = time.sleep) -> None:
        """Called on a node. Raises UserFault where the secret isn't seen within ``wait_s`` seconds."""
        deadline = time.monotonic() + wait_s
        while True:
            try:
                if self._file.read_text(encoding="ascii") == self._secret:
                    return
            except (OSError, ValueError):
                pass
            if time.monotonic() >= deadline:
                raise UserFault(
                    f"the node {socket.gethostname()} does not see the run's folder",
                    where=str(self.path),
                    fix="put the run (--run) on a file system that all nodes share under the same path",
                )
            sleep(0.5)

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)
