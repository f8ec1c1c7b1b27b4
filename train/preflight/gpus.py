"""Whether this node has the GPUs that the training asks for, with the memory that the rollout engine will take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experts.serving.gpus import Gpu, found_gpus
from registry.errors import UserFault
from train.preflight.check import NotYet
from train.preflight.site import Site


def check(site: Site, found: Callable[[], Sequence[Gpu]] = found_gpus) -> str:
    """Raises UserFault where GPUs are missing or taken; NotYet where another cluster's are used (see `ray`)."""
    config = site.config
    if config.platform != "cuda":
        return "platform cpu needs none"
    if config.ray.address is not None:
        raise NotYet("the joined cluster's GPUs are counted by the check `ray`")
    asked = config.cluster.gpus_per_node
    try:
        gpus = found()
    except UserFault as fault:
        raise UserFault(fault.what, where="this node", fix="run this on the node that trains") from fault
    if len(gpus) < asked:
        raise UserFault(
            f"cluster.gpus_per_node asks for {asked} GPUs, this node shows {len(gpus)}",
            where="this node (CUDA_VISIBLE_DEVICES is kept)",
            fix=f"set cluster.gpus_per_node={len(gpus)}, or show more GPUs",
        )
    share = config.engine.memory
    taken = [gpu for gpu in gpus[:asked] if gpu.free_gib < share * gpu.total_gib]
    if taken:
        listing = ", ".join(f"{gpu.label} {gpu.free_gib:.1f} of {gpu.total_gib:.1f} GiB" for gpu in taken)
        raise UserFault(
            f"less memory is free than engine.memory={share:g} will take: {listing}",
            where="this node",
            fix="end what runs there, or serve the experts on other GPUs (`maestro experts serve --gpus`, "
            "CUDA_VISIBLE_DEVICES for the training)",
        )
    return f"{asked} of {len(gpus)}: {gpus[0].name}, {min(gpu.free_gib for gpu in gpus[:asked]):.1f} GiB free or more"
