"""verl's checkpoints on disk: which are complete, which is newest, and how one becomes a Hugging Face folder.

verl writes `global_step_N/{actor,data.pt}` and then the number into a tracker file. A kill between the two, or in the
middle of the tracker, must not cost the run: the tracker is rewritten from what is complete.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

TRACKER = "latest_checkpointed_iteration.txt"
_PARTS = ("model", "optim", "extra_state")


def is_complete(folder: Path) -> bool:
    """Model, optimiser, extra state (scheduler, RNG) of every rank and the data position are there and whole."""
    size = world_size(folder)
    if not size:
        return False
    parts = [folder / "actor" / f"{kind}_world_size_{size}_rank_{rank}.pt" for rank in range(size) for kind in _PARTS]
    # torch writes zip archives, whose directory comes last: one that was cut short is no zip.
    return all(part.is_file() and zipfile.is_zipfile(part) for part in (folder / "data.pt", *parts))


def world_size(folder: Path) -> int:
    """Processes that wrote the checkpoint; 0 where its files do not agree, or there are none."""
    names = (p.name for p in (folder / "actor").glob("model_world_size_*"))
    sizes = {int(m[1]) for name in names if (m := re.match(r"model_world_size_(\d+)_", name))}
    return sizes.pop() if len(sizes) == 1 else 0


def complete_steps(folder: Path) -> list[int]:
    """Steps of the complete checkpoints in `folder`, ascending."""
    if not folder.is_dir():
        return []
    steps = []
    for child in folder.iterdir():
        match = re.fullmatch(r"global_step_(\d+)", child.name)
        if match and is_complete(child):
            steps.append(int(match[1]))
    return sorted(steps)


def repair_tracker(folder: Path) -> int:
    """Point verl's tracker at the newest complete checkpoint; returns its step, 0 where there is none."""
    steps = complete_steps(folder)
    tracker = folder / TRACKER
    if not steps:
        tracker.unlink(missing_ok=True)
        return 0
    partial = tracker.with_suffix(".partial")
    partial.write_text(str(steps[-1]))
    os.replace(partial, tracker)
    return steps[-1]


def keep_last(folder: Path, count: int) -> list[int]:
    """Remove what is older than the last `count` complete checkpoints; returns the steps that went.

    verl does it for the checkpoints of one attempt only: after a resume the older ones would stay for ever.
    """
    kept = complete_steps(folder)[-count:]
    gone = []
    for child in folder.iterdir() if kept else ():
        match = re.fullmatch(r"global_step_(\d+)", child.name)
        if match and int(match[1]) < kept[0]:
            shutil.rmtree(child, ignore_errors=True)  # verl may be at the same folder
            gone.append(int(match[1]))
    return sorted(gone)


def export(folder: Path, step: int, out: Path, processor_from: Path, notes: Mapping[str, str] | None = None) -> None:
    """Write the model of checkpoint `step` with its processor to `out` (complete or not at all).

    notes: text files beside it, name to content. Raises FileNotFoundError when the checkpoint holds no Hugging Face
    weights.
    """
    source = folder / f"global_step_{step}" / "actor" / "huggingface"
    if not list(source.glob("*.safetensors")):
        raise FileNotFoundError(f"{source} holds no weights")
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(processor_from, partial, ignore=shutil.ignore_patterns("*.safetensors*", "*.bin"))
    for weights in source.glob("*.safetensors*"):
        shutil.copy2(weights, partial / weights.name)
    for name, text in (notes or {}).items():
        (partial / name).write_text(text, encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)
