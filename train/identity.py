"""One folder, one run: it is trained by one process at a time and keeps the config that it was started with."""

from __future__ import annotations

import difflib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from registry.errors import UserFault
from train.config import TrainConfig
from train.paths import RunPaths


@contextmanager
def alone(paths: RunPaths) -> Iterator[None]:
    """Holds the run's lock; the kernel lets go of it when this process ends, however it ends.

    Raises UserFault where another process holds it.
    """
    lock = os.open(paths.root / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise UserFault(
            "another process is training this run", where=str(paths.root), fix="wait for it, or use another run=FOLDER"
        ) from error
    try:
        yield
    finally:
        os.close(lock)


def pin_config(config: TrainConfig, paths: RunPaths) -> None:
    """A run has one config. More steps may be asked for later; anything else would be another run.

    Raises UserFault with the difference.
    """
    now = json.loads(config.model_dump_json())
    if paths.config.exists():
        before = _with_later_keys(_read_config(paths))
        same = _identity(before) == _identity(now)
        if not same and config.resume == "never":  # rows and policies of another seed or world are none of this run's
            for folder in (paths.train_rows.parent, paths.blank, paths.cold):
                shutil.rmtree(folder, ignore_errors=True)
        elif not same:
            difference = "\n".join(
                line
                for line in difflib.unified_diff(_lines(before), _lines(now), "this run", "asked for", lineterm="", n=0)
                if not line.startswith("@@")
            )
            raise UserFault(
                f"the run was started with another config:\n{difference}",
                where=str(paths.root),
                fix="use another run=FOLDER, or delete this one",
            )
    partial = paths.config.with_suffix(".partial")
    partial.write_text(json.dumps(now, indent=2), encoding="utf-8")
    partial.replace(paths.config)


def _read_config(paths: RunPaths) -> dict[str, Any]:
    """The config that the run was begun with. Raises UserFault where its file is broken."""
    try:
        found = json.loads(paths.config.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("grpo"), dict):
        raise UserFault(
            "the run's config cannot be read: the file is cut off or damaged",
            where=str(paths.config),
            fix="put a whole copy of it in its place, or use another run=FOLDER",
        )
    return found


def _with_later_keys(before: dict[str, Any]) -> dict[str, Any]:
    """The config of a run that an earlier version began: keys that came later have the defaults it ran with."""
    try:
        return json.loads(TrainConfig.model_validate(before).model_dump_json())
    except ValidationError:
        return before  # the difference is told below


def _identity(config: dict[str, Any]) -> dict[str, Any]:
    grpo = {k: v for k, v in config["grpo"].items() if k != "steps"}
    others = ("resume", "checkpoint", "run", "endpoints", "watch", "ray")
    return {k: v for k, v in config.items() if k not in others} | {"grpo": grpo}


def _lines(config: dict[str, Any]) -> list[str]:
    return json.dumps(_identity(config), indent=1, sort_keys=True).splitlines()
