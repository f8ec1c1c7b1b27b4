"""The same models as one Ray Serve LLM application, for several nodes.

The one idea: on a cluster Ray places; what goes into the file is each model's need as a share of one GPU. All
models answer at one address, told apart by name. Source of the form: `ray.serve.llm.LLMServingArgs`.
"""

from __future__ import annotations

import importlib
import json
import math
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from experts.serving.launch import NOWHERE, Launch, program
from experts.serving.placement import Placed, Placement
from experts.serving.ports import HOST
from registry.errors import UserFault

RAY_PORT = 8000
_CONCURRENT = 256


def ray_application(placement: Placement, port: int = RAY_PORT) -> dict[str, Any]:
    """The configuration that `serve run` and `serve deploy` take."""
    firsts = [server for server in placement.servers if server.copy == 0]
    return {
        "http_options": {"host": HOST, "port": port},
        "applications": [
            {
                "name": "maestro-experts",
                "route_prefix": "/",
                "import_path": "ray.serve.llm:build_openai_app",
                "args": {"llm_configs": [_model(server, placement.utilization) for server in firsts]},
            }
        ],
    }


def write_application(application: dict[str, Any], path: Path) -> None:
    """As YAML, in place at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(yaml.safe_dump(application, sort_keys=False, allow_unicode=True), encoding="utf-8")
    part.replace(path)


def ray_schema_fault(application: dict[str, Any]) -> str | None:
    """None when Ray's own schema takes the application and its engine can be loaded; else the reason. Slow: loads
    Ray and vLLM."""
    try:
        schema = importlib.import_module("ray.serve.llm").LLMServingArgs
        importlib.import_module("ray.llm._internal.serve.engines.vllm.vllm_models")  # a vLLM of another age shows here
    except ImportError as error:
        return f"Ray Serve LLM cannot be loaded here: {error}"
    try:
        for part in application["applications"]:
            schema.model_validate(part["args"])
    except ValueError as error:
        return f"Ray's schema refuses it: {error}"
    return None


def ray_launch(placement: Placement, file: Path, port: int) -> Launch:
    """`serve run FILE` as one server for all models. Raises UserFault when there is no `serve` program."""
    models = tuple(server.model for server in placement.servers if server.copy == 0)
    return Launch(
        name="Ray Serve",
        models=models,
        words=(program("serve", "install Ray Serve LLM (`ray[llm]`) into this environment"), "run", str(file)),
        devices=("Ray",),
        wanted_port=port,
        health="/-/healthz",
        polite=signal.SIGINT,  # the one that makes it take its application off the cluster
    )


def _model(server: Placed, utilization: float) -> dict[str, Any]:
    model, width = server.model, server.model.serving.tensor_parallel
    gpu = server.gpus[0]
    # Of what may be used of a GPU, rounded up; a model over several GPUs gets them whole.
    need = server.memory.total_gib / (gpu.total_gib * utilization)
    share = 1.0 if width > 1 else min(1.0, math.ceil(need * 100) / 100)
    engine: dict[str, Any] = {
        "max_model_len": model.context_tokens,
        "gpu_memory_utilization": round(share * utilization, 4),
        "limit_mm_per_prompt": {"image": model.max_images, "video": 0},
        "allowed_media_domains": [NOWHERE],
    }
    if width > 1:
        engine["tensor_parallel_size"] = width
    if model.trust_remote_code:
        engine["trust_remote_code"] = True
    return {
        "model_loading_config": {"model_id": model.id, "model_source": str(model.folder or model.source)},
        "engine_kwargs": engine | _as_keywords(model.serving.extra_args),
        "placement_group_config": {
            "bundle_per_worker": {"CPU": 1, "GPU": share},
            "strategy": "STRICT_PACK" if width > 1 else "PACK",
        },
        "deployment_config": {
            "num_replicas": model.serving.replicas,
            "max_ongoing_requests": _CONCURRENT,
        },
    }


def _as_keywords(words: Sequence[str]) -> dict[str, Any]:
    """Command-line words as the engine's keyword arguments. Raises UserFault for a value without an option."""
    keywords: dict[str, Any] = {}
    name = None
    for word in words:
        if word.startswith("--"):
            option, equals, value = word[2:].partition("=")
            name = option.replace("-", "_")
            keywords[name] = _value(value) if equals else True
            name = None if equals else name
        elif name is not None:
            keywords[name] = _value(word)
            name = None
        else:
            raise UserFault(f"extra_args: {word!r} belongs to no option", fix="write ['--option', 'value']")
    return keywords


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
