"""The connection to a Ray cluster, or a cluster of this machine alone.

The one idea: only what was started here is ended here. A running cluster is left as it was, but for the workers that
end with the connection.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from registry.errors import UserFault

LOCAL = "local"
_STORE_BYTES = 100 * 1024 * 1024  # nothing large is passed
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}


@contextmanager
def connected(address: str | None) -> Iterator[int]:
    """Connect to the cluster at ``address`` ("auto" on one of its nodes); without one at ``RAY_ADDRESS``, and without
    that start one on this machine. Yields the number of nodes with a CPU.

    Raises:
        UserFault: Ray is not installed, or the cluster cannot be reached.
    """
    try:
        import ray
    except ImportError as error:
        raise UserFault("Ray is not installed", where="--engine ray", fix="make install") from error
    if ray.is_initialized():
        yield _nodes()
        return
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    target = address or os.environ.get("RAY_ADDRESS") or LOCAL
    # Unix sockets have short names: Ray's folder cannot lie deep inside the run
    folder = tempfile.mkdtemp(prefix="maestro-ray-") if target == LOCAL else None
    try:
        _connect(target, folder)
        yield _nodes()
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _connect(target: str, folder: str | None) -> None:
    import ray

    local: dict[str, Any] = {
        "include_dashboard": False,
        "object_store_memory": _STORE_BYTES,
        "_temp_dir": os.path.join(folder or "", "ray"),  # Ray opens its folder to everybody; the one around it is ours
        "_node_ip_address": "127.0.0.1",
    }
    try:
        ray.init(address=target, log_to_driver=False, logging_level=logging.ERROR, **(local if folder else {}))
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UserFault(
            f"no Ray cluster can be reached: {reason}",
            where=f"--ray-address {target}",
            fix="see `ray status` on a node of the cluster; without an address this machine alone is used",
        ) from error


def _nodes() -> int:
    import ray

    return sum(1 for node in ray.nodes() if node.get("Alive") and node.get("Resources", {}).get("CPU"))
