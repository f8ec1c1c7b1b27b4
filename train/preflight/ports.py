"""Whether this machine can listen, and be reached, on the ports that a run opens.

No port is fixed: Ray's own cluster, verl and vLLM take free ones. So what can go wrong is that none is left, or that
the address by which Ray would call this node does not lead to it (a VPN, a container without a network).
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence

from registry.errors import UserFault
from train.preflight.site import Site

_LOOPBACK = "127.0.0.1"
_EACH = 16  # ports of a GPU's processes: Ray's workers, the process group, the engine and its queues
_SECONDS = 5.0


def check(site: Site, addresses: Sequence[str] | None = None) -> str:
    """Raises UserFault where too few ports can be opened or one cannot be reached."""
    count = _EACH * site.config.cluster.gpus_per_node
    where = addresses or ([_LOOPBACK] if site.config.platform == "cpu" else [_LOOPBACK, own_address()])
    for address in dict.fromkeys(where):
        _open(address, count)
    return f"{count} ports can be opened and reached on {' and '.join(dict.fromkeys(where))}"


def own_address() -> str:
    """This machine's address as Ray finds it: that of the way to the outside; no packet is sent."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("8.8.8.8", 53))
            return str(probe.getsockname()[0])
        except OSError:
            return _LOOPBACK


def _open(address: str, count: int) -> None:
    with contextlib.ExitStack() as opened:
        try:
            for _ in range(count):
                listener = opened.enter_context(contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)))
                listener.bind((address, 0))
                listener.listen(1)
                port = listener.getsockname()[1]
            opened.enter_context(contextlib.closing(socket.create_connection((address, port), timeout=_SECONDS)))
        except OSError as error:
            raise UserFault(
                f"a port cannot be opened and reached on {address}: {error.strerror or error}",
                where="this node",
                fix="close what holds the ports or files (`ss -s`, `ulimit -n`), or mend the node's network",
            ) from error
