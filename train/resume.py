"""Where a run goes on: its own newest checkpoint, or one of another run (`resume: PATH`).

One idea: another run's checkpoint is only the beginning. Once this run has a complete one of its own, it goes on from
that, so the same command may be given again after any break.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train import checkpoints
from train.config import TrainConfig
from train.paths import RunPaths

# of a model's config: what a version of the libraries or a way of running it decides, not the model
_NO_SHAPE = {
    "dtype", "torch_dtype", "transformers_version", "attn_implementation", "_attn_implementation", "use_cache",
    "_name_or_path", "name_or_path", "bos_token_id", "eos_token_id", "pad_token_id",
}  # fmt: skip


def source_of(config: TrainConfig, paths: RunPaths) -> Path | None:
    """The other run's checkpoint that this run would begin from now; None where it would not.

    Raises UserFault where `resume` names no complete checkpoint.
    """
    if config.resume in ("auto", "never") or checkpoints.complete_steps(paths.checkpoints):
        return None
    given = Path(config.resume).expanduser().resolve()
    if re.fullmatch(r"global_step_\d+", given.name) and checkpoints.is_complete(given):
        return given
    for folder in (given, given / "checkpoints"):
        steps = checkpoints.complete_steps(folder)
        if steps:
            return folder / f"global_step_{steps[-1]}"
    raise UserFault(
        "no complete checkpoint to go on from",
        where=f"resume: {config.resume}",
        fix="give a run's folder, its checkpoints folder, or one global_step_N in it (or auto, or never)",
    )


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("global_step_"))


def resume_settings(config: TrainConfig, paths: RunPaths) -> dict[str, Any]:
    """verl's settings for it. Raises UserFault as `source_of`."""
    if config.resume == "never":
        return {"trainer.resume_mode": "disable"}
    source = source_of(config, paths)
    if source is None:
        return {"trainer.resume_mode": "auto"}
    return {"trainer.resume_mode": "resume_path", "trainer.resume_from_path": str(source)}


def check_source(config: TrainConfig, paths: RunPaths) -> None:
    """Refuse a checkpoint that this run cannot go on from, its own or another's, before anything is started.

    Raises UserFault.
    """
    own = checkpoints.complete_steps(paths.checkpoints)
    if own:
        _check_processes(config, paths.checkpoints / f"global_step_{own[-1]}")
    source = source_of(config, paths)
    if source is None:
        return
    if step_of(source) >= config.grpo.steps:
        raise UserFault(
            f"the checkpoint is of step {step_of(source)}, and the run ends at step {config.grpo.steps}",
            where=str(source),
            fix=f"give grpo.steps above {step_of(source)}: steps are counted on from the checkpoint's",
        )
    _check_processes(config, source)
    model = Path(config.policy).expanduser() if config.policy else paths.cold
    if not config.policy and not (model / "config.json").exists():
        model = _cold_of(source)
        if not (model / "config.json").exists():
            raise UserFault(
                "that run has no policy before RL to take along",
                where=str(model),
                fix="name the policy that it started from (policy: FOLDER)",
            )
    difference = model_difference(source / "actor" / "huggingface", model)
    if difference:
        raise UserFault(
            f"a checkpoint of another model: {difference}",
            where=f"{source}, against {model}",
            fix="start from the policy that the checkpoint belongs to, or without resume",
        )


def _check_processes(config: TrainConfig, checkpoint: Path) -> None:
    """Each process of verl's keeps its own part of weights and optimiser, in a file named by their number; verl joins
    and parts no files, so another number would end with "no such file" once the GPUs are taken."""
    before, now = checkpoints.world_size(checkpoint), config.cluster.nodes * config.cluster.gpus_per_node
    if before != now:
        raise UserFault(
            f"a checkpoint of {_processes(before)}, and this run would have {now}",
            where=str(checkpoint),
            fix=f"train with {_processes(before)} (cluster.nodes x cluster.gpus_per_node), or begin another run from "
            "the exported policy (`maestro train export`, then policy: FOLDER), with a new optimiser",
        )


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def take_cold_policy(config: TrainConfig, paths: RunPaths) -> bool:
    """Copy the policy before RL of the run that this one goes on from; returns whether there was one to copy."""
    source = source_of(config, paths)
    if source is None:
        return False
    partial = paths.cold.with_name(paths.cold.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(_cold_of(source), partial)
    partial.rename(paths.cold)
    return True


def model_difference(one: Path, other: Path) -> str:
    """The first thing in which two Hugging Face folders are of different models; empty where there is none.

    Keys that only one of them has are passed over: versions of the libraries write more or fewer.
    """
    ours, theirs = _json(other / "config.json"), _json(one / "config.json")
    if ours is None or theirs is None:
        return f"no model config in {one if theirs is None else other}"
    found = _differs(theirs, ours, "")
    if found:
        return found
    words = [_vocabulary(folder) for folder in (one, other)]
    if None not in words and words[0] != words[1]:
        return "its tokenizer has another vocabulary"
    return ""


def _differs(there: dict[str, Any], here: dict[str, Any], prefix: str) -> str:
    for key in sorted(there.keys() & here.keys() - _NO_SHAPE):
        a, b = there[key], here[key]
        if isinstance(a, dict) and isinstance(b, dict):
            found = _differs(a, b, f"{prefix}{key}.")
            if found:
                return found
        elif a != b:
            return f"{prefix}{key} is {a!r} there and {b!r} here"
    return ""


def _vocabulary(folder: Path) -> Any:
    raw = _json(folder / "tokenizer.json")
    if raw is None:
        return None
    added = sorted((one.get("id"), one.get("content")) for one in raw.get("added_tokens") or ())
    return (raw.get("model") or {}).get("vocab"), added


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _cold_of(checkpoint: Path) -> Path:
    return RunPaths.at(checkpoint.parent.parent).cold
