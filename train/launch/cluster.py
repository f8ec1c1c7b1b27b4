"""Ray: a cluster of the run's own on this machine, or one that is there and is joined.

One idea: a process of Ray's own cluster inherits the launcher's environment and folder; in a cluster that others
started nothing is inherited, so both travel inside `ray.init`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train.config import TrainConfig

_INIT = "ray_kwargs.ray_init."
# Prints one JSON list; the cluster's address comes as an argument.
_ASK = """
import json, sys, ray
ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
print("NODES " + json.dumps([n for n in ray.nodes()], default=str))
"""


def joining(config: TrainConfig, environment: Mapping[str, str]) -> dict[str, Any]:
    """verl's settings for a cluster that is there already, dotted; none for a cluster of the run's own.

    environment: what the run's processes need to find in theirs, on every node.
    """
    if config.ray.address is None:
        return {}
    settings: dict[str, Any] = {"+" + _INIT + "address": config.ray.address}
    settings |= {f"+{_INIT}runtime_env.env_vars.{name}": value for name, value in environment.items()}
    for key, files in (("train_files", config.data.train_files), ("val_files", config.data.validation_files)):
        if files:  # a worker's folder is that of `ray start`, not ours
            settings[f"data.{key}"] = [str(Path(file).resolve()) for file in files]
    return settings


def own_folder(config: TrainConfig) -> Path | None:
    """A new folder for the files of a cluster of the run's own; none where one is joined: Ray looks for the other's
    files where that one put them."""
    # Unix sockets have short names: Ray's folder cannot lie deep inside the run
    return Path(tempfile.mkdtemp(prefix="maestro-ray-")) if config.ray.address is None else None


@dataclass(frozen=True)
class RayNode:
    """A node of a cluster that is alive: its address, and its GPUs, whoever uses them."""

    address: str
    gpus: int


def ask_nodes(address: str, timeout_s: float, command: tuple[str, ...] = (sys.executable, "-c", _ASK)) -> list[RayNode]:
    """The living nodes of the cluster at `address`, asked by a process of its own, which a cluster that is gone cannot
    hold up. Raises UserFault where none answers in time."""
    fix = "start it (`ray start --head`, docs/launch.md), or correct ray.address"
    try:
        asked = subprocess.run(
            [*command, address],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserFault(
            f"no Ray cluster answers within {timeout_s:g} s", where=f"ray.address={address}", fix=fix
        ) from None
    found = next((line[6:] for line in asked.stdout.splitlines() if line.startswith("NODES ")), None)
    if asked.returncode or found is None:
        said = asked.stderr.strip().splitlines()
        last = " ".join(said[-1].split())[:300] if said else f"exit code {asked.returncode}"
        raise UserFault(f"no Ray cluster can be joined: {last}", where=f"ray.address={address}", fix=fix)
    return [
        RayNode(str(node.get("NodeManagerAddress")), int((node.get("Resources") or {}).get("GPU", 0)))
        for node in json.loads(found)
        if node.get("Alive")
    ]
