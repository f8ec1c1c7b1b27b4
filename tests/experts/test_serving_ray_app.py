"""The same models as one Ray Serve application."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from plan_doubles import REGISTRY, plan

from experts.serving.ray_app import ray_application
from maestro.cli.app import run
from registry.registry import Registry


@pytest.fixture
def registry(load: Callable[[str], Registry]) -> Registry:
    return load(REGISTRY)


def test_the_ray_application_shares_gpus_by_need(load: Callable[[str], Registry]) -> None:
    extra = "serving: {tensor_parallel: 2, extra_args: ['--max-num-seqs', '64', '--enforce-eager', '--x=a']}"
    text = REGISTRY.replace("parameters_b: 8.3", f"parameters_b: 8.3\n    {extra}")
    application = ray_application(plan(load(text), 4, 80, only=["Charts", "General"]).placement)
    assert application["http_options"] == {"host": "127.0.0.1", "port": 8000}
    (app,) = application["applications"]
    assert app["import_path"] == "ray.serve.llm:build_openai_app"
    charts, general = app["args"]["llm_configs"]
    assert charts == {
        "model_loading_config": {"model_id": "lab/charts-vl", "model_source": "lab/charts-vl"},
        "engine_kwargs": {
            "max_model_len": 8192,
            "gpu_memory_utilization": 0.9,
            "limit_mm_per_prompt": {"image": 1, "video": 0},
            "allowed_media_domains": ["media.invalid"],
            "tensor_parallel_size": 2,
            "max_num_seqs": 64,
            "enforce_eager": True,
            "x": "a",
        },
        "placement_group_config": {"bundle_per_worker": {"CPU": 1, "GPU": 1.0}, "strategy": "STRICT_PACK"},
        "deployment_config": {"num_replicas": 1, "max_ongoing_requests": 256},
    }
    assert general["placement_group_config"] == {"bundle_per_worker": {"CPU": 1, "GPU": 0.42}, "strategy": "PACK"}
    assert general["engine_kwargs"]["gpu_memory_utilization"] == 0.378
    assert general["engine_kwargs"]["trust_remote_code"] is True


def test_the_ray_application_is_written_and_started_only_when_told_and_able(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray.serve.llm", None)
    file = tmp_path / "app" / "ray.yaml"
    path = registry.places["tool", "ocr"][0]
    words = ["experts", "serve", "--registry", path, "--gpus", "0,1", "--gpu-memory", "80", "--engine", "ray"]
    assert run([*words, "--ray-config", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"written: {file}; on the cluster: serve run {file}\n"
    assert printed.err.startswith("not checked by Ray: Ray Serve LLM cannot be loaded here: ")
    assert yaml.safe_load(file.read_text()) == ray_application(plan(registry, 2, 80).placement)
    assert run([*words, "--ray-config", str(file), "--start", "--endpoints", str(tmp_path / "e.json")]) == 2
    assert "error: Ray Serve LLM cannot be loaded here" in capsys.readouterr().err
    assert run([*words, "--dry-run"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["applications"][0]["name"] == "maestro-experts"


def test_the_ray_application_has_the_fields_of_the_installed_ray(registry: Registry) -> None:
    found = importlib.util.find_spec("ray")
    if found is None or not found.submodule_search_locations:
        pytest.skip("Ray is not installed")
    source = Path(found.submodule_search_locations[0]) / "llm/_internal/serve/core/configs/llm_config.py"
    classes = {node.name: node for node in ast.parse(source.read_text()).body if isinstance(node, ast.ClassDef)}

    def fields(name: str) -> set[str]:
        return {
            n.target.id for n in classes[name].body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
        }

    for config in ray_application(plan(registry, 4, 80).placement)["applications"][0]["args"]["llm_configs"]:
        assert set(config) <= fields("LLMConfig")
        assert set(config["model_loading_config"]) <= fields("ModelLoadingConfig")
