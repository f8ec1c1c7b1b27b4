"""Whether the policy's folder holds a model and its processor."""

from __future__ import annotations

from registry.errors import UserFault
from train.preflight.site import Site

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def check(site: Site) -> str:
    """Raises UserFault where the folder lacks config, weights or processor; NotYet before the tiny policy is built."""
    folder = site.model
    if site.config.policy:
        fix = f"hf download OWNER/NAME --local-dir {site.config.policy}, or correct `policy`"
        if not (folder / "config.json").is_file():
            raise UserFault("the policy's folder holds no model (no config.json)", where=str(folder), fix=fix)
        if not any(next(folder.glob(pattern), None) for pattern in _WEIGHTS):
            raise UserFault("the policy's folder holds no weights", where=str(folder), fix=fix)
    processor = site.processor
    return f"{folder}: {type(processor).__name__}, {len(processor.tokenizer)} tokens"
