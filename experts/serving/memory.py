"""`Memory`: how much of a GPU a model takes, as an estimate that shows its parts.

The one idea: weights + cache + a fixed rest, on each of the model's GPUs. What is on disk is measured, what
the registry states is taken, and only what nobody says is estimated, on the high side.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experts.serving.model import ServedModel
from registry.errors import UserFault

GIB = 2**30
# CUDA context, activations, the picture encoder's peak and CUDA graphs of a model up to about 10B.
REST_GIB = 3.0
# Keys and values of one token in dense models of 4B to 10B with grouped queries: 56 to 144 KiB in 16 bit.
KV_KIB_PER_TOKEN = 160.0
_SIZE_IN_NAME = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,3})?)b(?![a-z0-9])", re.IGNORECASE)
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


class UnknownSize(UserFault):
    """Neither the registry nor a model's name says how large it is."""

    def __init__(self, *models: ServedModel) -> None:
        self.models = models
        names = ", ".join(f"{model.id} ({', '.join(model.users)})" for model in models)
        super().__init__(
            f"the size of these models is not known: {names}",
            fix="write the parameters in billions into the registry, for example `parameters_b: 0.9`",
        )


@dataclass(frozen=True)
class Memory:
    """GiB on each of the model's GPUs. `source` says where the size of the weights comes from."""

    weights_gib: float
    cache_gib: float
    rest_gib: float
    source: str

    @property
    def total_gib(self) -> float:
        """What the model needs before it gets more cache."""
        return self.weights_gib + self.cache_gib + self.rest_gib


def memory_of(model: ServedModel, *, tensor_parallel: int | None = None, context: int | None = None) -> Memory:
    """The need of `model`; the arguments take the place of the registry's values (to try what would fit).

    Raises UnknownSize, and UserFault when its folder is not there.
    """
    split = tensor_parallel or model.serving.tensor_parallel
    folder = model.folder
    if model.serving.gpu_memory_gb is not None and split == model.serving.tensor_parallel:
        return Memory(0.0, 0.0, model.serving.gpu_memory_gb, "gpu_memory_gb")
    weights, source = _weights(model, folder)
    per_token = model.serving.kv_kib_per_token or _measured_kv(folder) or _estimated_kv(weights)
    tokens = min(context or model.context_tokens, model.context_tokens) * model.serving.contexts
    return Memory(weights / split, per_token * tokens / 2**20 / split, REST_GIB, source)


def _weights(model: ServedModel, folder: Path | None) -> tuple[float, str]:
    """(GiB over all GPUs, where the figure comes from)."""
    if folder is not None:
        for pattern in _WEIGHTS:
            size = sum(file.stat().st_size for file in folder.glob(pattern))
            if size:
                return size / GIB, "size on disk"
        raise UserFault(f"the model folder {str(folder)!r} holds no weights ({', '.join(_WEIGHTS)})")
    billions, source = model.parameters_b, "parameters_b"
    if billions is None:
        found = _SIZE_IN_NAME.findall(model.id.rsplit("/", 1)[-1].replace("-", " ").replace("_", " "))
        if not found:
            raise UnknownSize(model)
        billions, source = float(found[-1]), "its name"
    return billions * 1e9 * model.serving.bytes_per_parameter / GIB, source


def _estimated_kv(weights_gib: float) -> float:
    return KV_KIB_PER_TOKEN * max(1.0, math.sqrt(weights_gib / 20.0))


def _measured_kv(folder: Path | None) -> float | None:
    """KiB a token from the folder's config.json, for models with plain attention."""
    if folder is None:
        return None
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UserFault(f"the model folder {str(folder)!r} holds no readable config.json") from None
    try:
        text = config.get("text_config", config)
        heads = int(text["num_attention_heads"])
        width = int(text.get("head_dim") or text["hidden_size"] // heads)
        kv_heads = int(text.get("num_key_value_heads") or heads)
        return int(text["num_hidden_layers"]) * kv_heads * width * 2 * 2 / 1024
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
