"""Help for the tests of serving plans: a registry of models, and where a plan puts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experts.serving.gpus import planned_gpus
from experts.serving.model import ServedModel
from experts.serving.plan import Plan, make_plan
from registry.registry import Registry
from registry.schema import Serving

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = """
experts:
  Charts:
    description: Charts.
    parameters_b: 8.3
    backend: {type: openai, model: lab/charts-vl, replicas: [{url: "http://127.0.0.1:9301/v1"}]}
  General:
    description: Everything.
    backend: &general
      type: openai
      model: lab/general-9B
      trust_remote_code: true
      replicas: [{url: "http://127.0.0.1:9302/v1"}]
    limits: {context_tokens: 32768, max_images: 4}
  Small:
    description: Small things.
    backend: {type: openai, model: lab/small-4b-it, replicas: [{url: "http://localhost:9303/v1"}]}
  Hosted:
    description: On other machines.
    backend: {type: openai, model: big/huge, replicas: [{url: "https://models.example/v1"}]}
tools:
  caption:
    description: A sentence about the picture.
    backend: *general
    limits: {context_tokens: 8192, max_images: 1}
  ocr:
    description: Texts.
    parameters_b: 0.9
    backend: {type: openai, model: lab/reader, replicas: [{url: "http://127.0.0.1:9304/v1"}]}
  detect:
    description: Boxes.
    backend: {type: python, target: "experts.tools.detect:DetectTool"}
"""


def plan(registry: Registry, gpus: int, gib: float, **fields: Any) -> Plan:
    return make_plan(registry, planned_gpus(range(gpus), gib), utilization=0.9, start=False, **fields)


def where(made: Plan) -> dict[str, tuple[list[int | None], float]]:
    return {s.model.id: ([gpu.index for gpu in s.gpus], s.fraction) for s in made.placement.servers}


def model(name: str = "m", gib: float = 0.0, **serving: Any) -> ServedModel:
    """A model that needs exactly so many GiB."""
    serving |= {"gpu_memory_gb": gib} if gib else {}
    return ServedModel(name, (name,), (), 8192, 1, Serving(**serving), parameters_b=8.0)
