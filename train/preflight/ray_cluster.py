"""Whether the Ray cluster is the one that the config means, and has its nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from registry.errors import UserFault
from train.launch.cluster import RayNode, ask_nodes
from train.preflight.site import Site


def check(
    site: Site,
    environ: Mapping[str, str] | None = None,
    ask: Callable[[str, float], Sequence[RayNode]] = ask_nodes,
) -> str:
    """Raises UserFault where the cluster is another, is not there, or is too small."""
    address, cluster = site.config.ray.address, site.config.cluster
    if address is None:
        there = (os.environ if environ is None else environ).get("RAY_ADDRESS")
        if cluster.nodes > 1:
            raise UserFault(
                f"cluster.nodes={cluster.nodes}, and a cluster of the run's own has this node alone",
                where="ray.address",
                fix="begin one with `ray start` on every node and set ray.address=auto (docs/launch.md)",
            )
        if there:
            raise UserFault(
                f"RAY_ADDRESS={there} is set: Ray would join that cluster instead of starting the run's own",
                where="the environment",
                fix=f"unset RAY_ADDRESS, or mean it: ray.address={there}",
            )
        return "a cluster of the run's own, on this node"
    nodes = ask(address, site.timeout_s)
    if site.config.platform != "cuda":
        return f"{len(nodes)} nodes answer at {address}"
    fit = [node for node in nodes if node.gpus >= cluster.gpus_per_node]
    if len(fit) < cluster.nodes:
        listing = ", ".join(f"{node.address} {node.gpus}" for node in nodes[:16]) or "none"
        raise UserFault(
            f"{cluster.nodes} nodes with {cluster.gpus_per_node} GPUs are asked for, the cluster has {len(fit)}; "
            f"GPUs by node: {listing}",
            where=f"ray.address={address}",
            fix="wait until all nodes have joined (`ray status`), or change cluster.nodes, cluster.gpus_per_node",
        )
    return f"{len(fit)} nodes with {cluster.gpus_per_node} GPUs or more at {address}"
