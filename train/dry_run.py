"""The settings that verl would get from a config, each with who set it, checked as verl checks them. Starts nothing.

One idea: the same list of overrides as a run's is laid over the installed verl's defaults by the same Hydra; origin is
then a comparison of keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train.config import TrainConfig, lay_override, load_config, read_file
from train.launch.cluster import joining
from train.paths import RunPaths
from train.pins import check_versions
from train.verl_config import environment, overrides, platform_settings, verl_settings
from train.verl_sources import ORIGIN

_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)[,}]")  # ${data.seed}, ${oc.select:data.seed,42}
VERL, CONFIG, COMMAND, PLATFORM, MAESTRO = "verl default", "config", "command line", "platform", "maestro"


@dataclass(frozen=True)
class Setting:
    """One of verl's settings. set_by: verl default, config, command line, platform, or maestro (fixed in the code, or
    the default of a key that the config leaves alone). origin: our key that decides it, None where there is none."""

    key: str
    value: Any
    set_by: str
    origin: str | None = None


@dataclass(frozen=True)
class DryRun:
    """What a run would start with. notes: what could not be checked here, and why."""

    config: TrainConfig
    settings: tuple[Setting, ...]
    versions: dict[str, str]
    environment: dict[str, str]
    notes: tuple[str, ...]


def dry_run(path: Path, given: Sequence[str] = ()) -> DryRun:
    """Compose and check the run of a config file and its `key=value` overrides.

    Raises UserFault: everything that verl would refuse, in one message, or wrong versions of verl or vLLM.
    """
    config = load_config(path, given)
    versions = check_versions()
    paths = RunPaths.at(config.run)
    model = Path(config.policy).resolve() if config.policy else paths.cold
    env = environment(config, paths, 1)
    wanted = verl_settings(config, paths, model) | joining(config, env)
    composed, followed = compose(wanted, path)
    from train.verl_checks import refusals

    notes, refused = _here(config, model)
    refused += refusals(composed)
    if refused:
        raise UserFault(
            "verl would refuse this run:\n" + "\n".join(f"- {text}" for text in refused),
            where=str(path),
            fix="change the keys named above; `--explain` lists the config's own",
        )
    who = _Origins(config, {key.lstrip("+") for key in wanted}, keys_given(path, given), followed)
    settings = tuple(Setting(key, value, *who.of(key)) for key, value in flat(composed))
    return DryRun(config, settings, versions, env, tuple(notes))


def compose(wanted: Mapping[str, Any], path: Path) -> tuple[Any, dict[str, str]]:
    """verl's defaults with `wanted` laid over them, resolved, and which of its settings take their value from which
    other. Raises UserFault for a key that verl does not know."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_module
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with initialize_config_module("verl.trainer.config", version_base=None):
            composed = hydra_compose("ppo_trainer", overrides=overrides(dict(wanted)))
        written = OmegaConf.to_container(composed)
        OmegaConf.resolve(composed)
    except (HydraException, OmegaConfBaseException) as error:
        text = str(error.__cause__ or error).strip().splitlines()
        raise UserFault(
            f"verl's settings do not take this: {text[0] if text else type(error).__name__}",
            where=str(path),
            fix="check the keys below `verl:` (a leading + adds a key that verl's schema does not list)",
        ) from error
    found = ((key, _REFERENCE.match(value)) for key, value in flat(written) if isinstance(value, str))
    return composed, {key: hit[1] for key, hit in found if hit}


def flat(composed: Any) -> list[tuple[str, Any]]:
    """Every leaf of a composed config as (dotted key, value), in verl's order; lists and empty mappings are leaves."""
    from omegaconf import OmegaConf

    def walk(node: Any, prefix: str) -> list[tuple[str, Any]]:
        if isinstance(node, dict) and node:
            return [leaf for key, value in node.items() for leaf in walk(value, f"{prefix}.{key}" if prefix else key)]
        return [(prefix, node)]

    return walk(OmegaConf.to_container(composed) if OmegaConf.is_config(composed) else composed, "")


def keys_given(path: Path, given: Sequence[str]) -> dict[str, str]:
    """Our keys that the file or the command line sets, dotted, each with which of them had the last word."""
    line: dict[str, Any] = {}
    for item in given:
        lay_override(line, item)
    return dict.fromkeys(_dotted(read_file(path)), CONFIG) | dict.fromkeys(_dotted(line), COMMAND)


def _dotted(raw: Mapping[str, Any], prefix: str = "") -> list[str]:
    keys = []
    for key, value in raw.items():
        name = f"{prefix}{key}"
        deeper = isinstance(value, Mapping) and prefix != "verl."
        keys += _dotted(value, f"{name}.") if deeper else [name]
    return keys


class _Origins:
    """Who set each of verl's settings."""

    def __init__(
        self, config: TrainConfig, named: set[str], given: Mapping[str, str], followed: Mapping[str, str]
    ) -> None:
        self._verl, self._named, self._given, self._followed = config.verl, named, given, followed
        self._platform = {key.lstrip("+") for key in platform_settings(config)}

    def of(self, key: str) -> tuple[str, str | None]:
        """(set_by, origin) of a leaf."""
        for _ in range(8):  # verl's settings follow each other over two or three others at most
            above = (key, *_parents(key))
            for name in above:
                for written in (f"verl.{name}", f"verl.+{name}"):
                    if written.removeprefix("verl.") in self._verl:
                        return self._given.get(written, CONFIG), written
            ours = next((name for name in above if name in self._named), None)
            if ours is not None:
                return self._ours(ours)
            if key not in self._followed:
                return VERL, None
            key = self._followed[key]
        return VERL, None

    def _ours(self, key: str) -> tuple[str, str | None]:
        origin = ORIGIN.get(key)
        if origin is not None and origin in self._given:
            return self._given[origin], origin
        return (PLATFORM if key in self._platform else MAESTRO), origin


def _parents(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1)]


def _here(config: TrainConfig, model: Path) -> tuple[list[str], list[str]]:
    """(notes, refusals) of what depends on this machine: the policy's folder, rows, GPUs."""
    notes, refused = [], []
    if not (model / "config.json").is_file():
        notes.append(f"no model in {model} yet: its context length and its template are not checked")
    missing = [name for name in (*config.data.train_files, *config.data.validation_files) if not Path(name).is_file()]
    if missing:
        notes.append(f"not there yet: {', '.join(missing)}")
    if config.platform != "cuda":
        return notes, refused
    if config.engine.attention == "flash_attention_2":
        import importlib.util

        if importlib.util.find_spec("flash_attn") is None:
            notes.append("engine.attention=flash_attention_2: flash-attn is not installed on this machine")
    found = visible_gpus()
    asked = config.cluster.gpus_per_node
    if found is None:
        notes.append(f"no GPU on this machine: whether a node has {asked} is not checked")
    elif found < asked:
        refused.append(
            f"cluster.gpus_per_node asks for {asked} GPUs, this node shows {found} "
            f"(CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'unset')})"
        )
    return notes, refused


def visible_gpus() -> int | None:
    """GPUs that this process may use; None on a machine without any."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else None
