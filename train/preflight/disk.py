"""Whether the disk holds the checkpoints that the run will keep."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from registry.errors import UserFault
from train.plan.find_model import architecture_of
from train.plan.memory import GIB, trained
from train.preflight.site import Site

# Bytes a weight in a checkpoint, as verl writes it: float32 weights, AdamW's two numbers, and the Hugging Face copy.
_WEIGHTS, _OPTIMISER, _COPY = 4, 8, 4
_REST = 64 * 2**20  # rollouts, metrics, logs and pages of a run


def checkpoint_bytes(site: Site) -> int:
    """One checkpoint of all GPUs together. Raises UserFault where the policy's shape is not known."""
    shape = architecture_of(site.config)
    count = trained(site.config, shape)
    weights = shape.parameters + (count if site.config.lora.rank else 0)
    return (_WEIGHTS + _COPY) * weights + _OPTIMISER * count


def check(site: Site, free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free) -> str:
    """Raises UserFault where less is free than the checkpoints, the best and the exported policy still need."""
    at_once = site.config.checkpoint.keep + 1  # after a resume the next one is written before the oldest goes
    one = checkpoint_bytes(site)
    policies = 2 * one * _COPY // (_WEIGHTS + _OPTIMISER + _COPY)
    root, kept = site.paths.root, (site.paths.checkpoints, site.paths.best, site.paths.policy)
    there = sum(path.stat().st_size for folder in kept for path in folder.rglob("*") if path.is_file())
    needed = max(0, at_once * one + policies - there) + _REST
    place = next(path for path in (root, *root.parents) if path.is_dir())
    left = free(place)
    if left < needed:
        raise UserFault(
            f"{needed / GIB:.1f} GiB are needed, {left / GIB:.1f} are free: {at_once} checkpoints of {one / GIB:.1f} "
            "GiB, the best and the exported policy",
            where=str(root),
            fix="free space, set run=FOLDER to a larger disk, or keep fewer: checkpoint.keep",
        )
    return (
        f"{left / GIB:.1f} GiB free; {at_once} checkpoints of {one / GIB:.2f} GiB and the rest need {needed / GIB:.1f}"
    )
