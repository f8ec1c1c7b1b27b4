"""Free ports on the loopback interface."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Collection

from registry.errors import UserFault

HOST = "127.0.0.1"
FIRST_PORT = 8101
_TRIES = 500


def is_free(port: int) -> bool:
    """Whether nobody listens there. vLLM itself would not notice: it shares a port that is taken."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            return False
    return True


def free_port(wanted: int, taken: Collection[int] = ()) -> int:
    """`wanted`, or the next free port after it that is not in `taken`. Raises UserFault when there is none."""
    for port in range(wanted, min(wanted + _TRIES, 65_536)):
        if port not in taken and is_free(port):
            return port
    raise UserFault(f"no port from {wanted} to {min(wanted + _TRIES, 65_536) - 1} is free on {HOST}")
