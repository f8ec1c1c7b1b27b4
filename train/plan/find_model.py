"""Where an `Architecture` comes from: a path, a known hub id, the local hub cache, or the embedded tier's own shape.

One idea: nothing is downloaded and no weights are opened.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from registry.errors import UserFault
from train.config import TrainConfig
from train.plan.architecture import Architecture, from_config
from train.tiny.model import TinyShape

_KNOWN = Path(__file__).with_name("models.yaml")
_MOST_BYTES = 4_000_000


def architecture_of(config: TrainConfig, model: str | None = None) -> Architecture:
    """The policy's shape: of `model` (a config.json, its folder, or a hub id) where given, else of the config's.

    Raises UserFault where it is not known.
    """
    name = model or config.policy
    if name is None:
        return _tiny(config)
    path = Path(name).expanduser()
    if path.is_file():
        return _read(path)
    if path.is_dir():
        return _read(path / "config.json")
    for known in yaml.safe_load(_KNOWN.read_text(encoding="utf-8")):
        # A folder that is not there yet is named after what will be downloaded into it.
        if any(name == hub or path.name == hub.split("/")[1] for hub in known["ids"]):
            limits = {key: known[key] for key in ("min_pixels", "max_pixels")}
            return from_config(known["config"], known["source"], **limits)
    cached = _cached(name)
    if cached is None:
        raise UserFault(
            f"the shape of the policy {name!r} is not known here",
            fix="download its config.json and preprocessor_config.json (no weights) and name them: "
            "--model FOLDER/config.json",
        )
    return _read(cached)


def _cached(name: str) -> Path | None:
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    return Path(found) if isinstance(found, str) else None


def _read(path: Path) -> Architecture:
    low, high = _pixels(path.parent)
    return from_config(_mapping(path), str(path), min_pixels=low, max_pixels=high)


def _pixels(folder: Path) -> tuple[int | None, int | None]:
    """The processor's limits to a picture's area, from whichever of its files is there."""
    for name in ("preprocessor_config.json", "processor_config.json"):
        if not (folder / name).is_file():
            continue
        found = _mapping(folder / name)
        found = found.get("image_processor", found)
        size = found.get("size") if isinstance(found.get("size"), dict) else {}
        low = found.get("min_pixels") or size.get("shortest_edge")
        high = found.get("max_pixels") or size.get("longest_edge")
        if isinstance(low, int) and isinstance(high, int) and 0 < low <= high:
            return low, high
    return None, None


def _mapping(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserFault(f"larger than {_MOST_BYTES} bytes", where=str(path), fix="name a model's config.json")
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserFault(
            f"cannot read the model's config: {error.strerror}", where=str(path), fix="name a model's config.json"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserFault(f"not JSON: {error}", where=str(path), fix="name a model's config.json") from error
    if not isinstance(found, dict):
        raise UserFault("not a JSON object", where=str(path), fix="name a model's config.json")
    return found


def _tiny(config: TrainConfig) -> Architecture:
    """What `train.tiny` will build: its shape, the learned vocabulary and about 18 special tokens."""
    shape = TinyShape()
    text = {
        "vocab_size": config.cold_start.vocabulary + 18,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": max(1, shape.heads // 2),
        "max_position_embeddings": 8192,
    }
    vision = {
        "depth": shape.vision_depth,
        "hidden_size": shape.vision_hidden,
        "intermediate_size": shape.vision_hidden * 2,
        "out_hidden_size": shape.hidden,
        "num_position_embeddings": 256,
        "deepstack_visual_indexes": [0],
    }
    return from_config(
        {"text_config": text, "vision_config": vision, "tie_word_embeddings": True},
        "the embedded tier's tiny Qwen3-VL",
        min_pixels=shape.min_pixels,
        max_pixels=shape.max_pixels,
    )
