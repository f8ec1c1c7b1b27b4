"""`Site`: what the checks look at: one config on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from registry.prompt import system_prompt
from registry.registry import Registry, default_registry_path
from train.config import TrainConfig
from train.paths import RunPaths
from train.preflight.check import NotYet


@dataclass(frozen=True)
class Site:
    """rows: how many rows of each file are read; timeout_s: for one question to a server or to Ray."""

    config: TrainConfig
    rows: int = 200
    timeout_s: float = 60.0

    @property
    def paths(self) -> RunPaths:
        return RunPaths.at(self.config.run)

    @property
    def model(self) -> Path:
        """The policy that the run starts from."""
        return Path(self.config.policy).resolve() if self.config.policy else self.paths.cold

    @cached_property
    def registry(self) -> Registry:
        """Without the addresses of an endpoints file. Raises UserFault."""
        return Registry.load(*(self.config.registry or (default_registry_path(),)))

    @property
    def system(self) -> str | None:
        """The system prompt of every episode. Raises UserFault."""
        style = self.config.protocol.prompt_style
        return None if style == "none" else system_prompt(self.registry, style, self.config.protocol.horizon)

    @cached_property
    def processor(self) -> Any:
        """Of the policy's folder; nothing is downloaded. Raises UserFault, NotYet."""
        if not self.config.policy and not (self.model / "config.json").is_file():
            raise NotYet("the tiny policy is built when the run starts")
        from transformers import AutoProcessor

        try:
            processor = AutoProcessor.from_pretrained(str(self.model), trust_remote_code=False, local_files_only=True)
            processor.image_processor.get_number_of_image_patches(64, 64, {})
            processor.tokenizer.encode("")
        except Exception as error:  # the library and those below it raise as they like
            said = " ".join(str(error).split())[:300] or type(error).__name__
            raise UserFault(
                f"the policy has no processor that counts text and pictures: {said}",
                where=str(self.model),
                fix="put tokenizer, chat template and preprocessor_config.json beside the weights",
            ) from error
        return processor
