"""Where step records go beside the run's own files: TensorBoard always, Weights & Biases where it is asked for.

One idea: a tracker takes flat numbers; what cannot be logged is said once and never ends a run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from registry.errors import UserFault
from train.config import TrainConfig
from train.paths import RunPaths
from train.tensorboard import StepWriter

_OFFLINE = ("offline", "dryrun")


class Tracker(Protocol):
    """Takes the record of one step after another."""

    def write(self, record: dict[str, Any]) -> None: ...
    def close(self) -> None: ...


class Trackers:
    """All trackers of a run. warn: told once, where one of them fails; the others go on."""

    def __init__(self, trackers: list[Tracker], warn: Callable[[str], None]) -> None:
        self._trackers, self._warn = trackers, warn

    def write(self, record: dict[str, Any]) -> None:
        self._each(lambda one: one.write(record))

    def close(self) -> None:
        self._each(lambda one: one.close())

    def _each(self, act: Callable[[Tracker], None]) -> None:
        for one in list(self._trackers):
            try:
                act(one)
            except Exception as error:  # the border: a server or a disk that is gone
                self._trackers.remove(one)
                self._warn(f"{type(one).__name__}: no longer logged to: {type(error).__name__}: {error}")


def open_trackers(config: TrainConfig, paths: RunPaths, warn: Callable[[str], None]) -> Trackers:
    """Raises UserFault where Weights & Biases is asked for and cannot be used."""
    found: list[Tracker] = [StepWriter(paths.tensorboard)]
    if config.watch.wandb:
        check_wandb()
        found.append(WandbTracker(config, paths))
    return Trackers(found, warn)


def check_wandb() -> None:
    """Raises UserFault where the package or the key is missing. Asks no server."""
    try:
        import wandb  # noqa: F401
    except ImportError as error:
        raise UserFault(
            "Weights & Biases is asked for, but the package wandb is not installed",
            where="watch.wandb",
            fix="pip install wandb, or watch.wandb=false",
        ) from error
    if os.environ.get("WANDB_MODE") in _OFFLINE:
        return
    if not (os.environ.get("WANDB_API_KEY") or _stored_key()):
        raise UserFault(
            "Weights & Biases is asked for, but there is no key",
            where="watch.wandb",
            fix="set WANDB_API_KEY, or WANDB_MODE=offline to send the run later with `wandb sync`",
        )


def _stored_key() -> bool:
    """Whether `wandb login` has left a key."""
    import netrc

    try:
        hosts = netrc.netrc().hosts
    except (OSError, netrc.NetrcParseError):
        return False
    return any("wandb" in host for host in hosts)


class WandbTracker:
    """A run of Weights & Biases; the same folder is the same run there, also after a resume."""

    def __init__(self, config: TrainConfig, paths: RunPaths) -> None:
        import wandb

        self._run = wandb.init(
            project=config.watch.wandb_project,
            name=f"{config.name}-s{config.seed}",
            id=hashlib.sha256(str(paths.root).encode()).hexdigest()[:16],
            resume="allow",
            dir=str(_folder(paths.root / "wandb")),
            config=config.model_dump(mode="json"),
            settings=wandb.Settings(console="off", init_timeout=60, silent=True),
        )

    def write(self, record: dict[str, Any]) -> None:
        self._run.log(dict(flat_numbers(record)), step=record["step"])

    def close(self) -> None:
        self._run.finish()


def flat_numbers(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """(name, number) of a step record; nested ones are `name/sub`."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from flat_numbers(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and not isinstance(value, bool) and prefix + key != "step":
            yield prefix + key, value


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
