"""Which model goes where, what the command lines are, and what is said when it cannot be."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from experts.serving.gpus import Gpu, found_gpus, planned_gpus
from experts.serving.memory import memory_of
from experts.serving.model import ServedModel, served_models
from experts.serving.placement import place
from experts.serving.plan import Plan, make_plan
from experts.serving.ports import free_port
from experts.serving.ray_app import ray_application
from maestro.cli.app import run
from registry.errors import UserFault
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


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Registry]:
    def _load(text: str) -> Registry:
        path = tmp_path / "registry.yaml"
        path.write_text(text)
        return Registry.load(path)

    return _load


@pytest.fixture
def registry(load: Callable[[str], Registry]) -> Registry:
    return load(REGISTRY)


def plan(registry: Registry, gpus: int, gib: float, **fields: Any) -> Plan:
    return make_plan(registry, planned_gpus(range(gpus), gib), utilization=0.9, start=False, **fields)


def where(made: Plan) -> dict[str, tuple[list[int | None], float]]:
    return {s.model.id: ([gpu.index for gpu in s.gpus], s.fraction) for s in made.placement.servers}


def model(name: str = "m", gib: float = 0.0, **serving: Any) -> ServedModel:
    """A model that needs exactly so many GiB."""
    serving |= {"gpu_memory_gb": gib} if gib else {}
    return ServedModel(name, (name,), (), 8192, 1, Serving(**serving), parameters_b=8.0)


def test_four_gpus_of_80_gib_get_the_largest_models_apart(registry: Registry) -> None:
    assert where(plan(registry, 4, 80)) == {
        "lab/general-9B": ([0], 0.9),
        "lab/charts-vl": ([1], 0.9),
        "lab/small-4b-it": ([2], 0.9),
        "lab/reader": ([3], 0.9),
    }


def test_several_small_models_share_a_gpu_in_proportion_to_their_need(registry: Registry) -> None:
    made = plan(registry, 2, 24, only=["Small", "ocr", "Charts"])
    assert where(made) == {
        "lab/charts-vl": ([0], 0.9),
        "lab/small-4b-it": ([1], 0.579),
        "lab/reader": ([1], 0.32),
    }
    assert [round(made.placement.needed_gib(gpu), 2) for gpu in made.placement.gpus] == [20.96, 20.13]


def test_what_does_not_fit_is_refused_with_what_would(registry: Registry) -> None:
    with pytest.raises(UserFault) as refused:
        plan(registry, 1, 16)
    assert str(refused.value).splitlines() == [
        "the models need 70.9 GiB, and GPU 0 gives 14.4 GiB",
        "  lab/charts-vl: 21.0 GiB = weights 15.5 + cache 2.5 + rest 3.0 (more than any GPU gives)",
        "  lab/general-9B: 29.8 GiB = weights 16.8 + cache 10.0 + rest 3.0 (more than any GPU gives)",
        "  lab/small-4b-it: 13.0 GiB = weights 7.5 + cache 2.5 + rest 3.0",
        "  lab/reader: 7.2 GiB = weights 1.7 + cache 2.5 + rest 3.0",
        "  fix: fewer models: --only ocr; or more GPUs: 8 of 16 GiB with tensor parallel "
        "(`serving: {tensor_parallel: 2}` in Charts, `serving: {tensor_parallel: 4}` in General)",
    ]


def test_a_shorter_context_is_named_where_that_is_enough(registry: Registry) -> None:
    with pytest.raises(UserFault, match=r"a shorter context: `limits: \{context_tokens: 4096\}` where it is longer"):
        plan(registry, 1, 24, only=["General"])


def test_tensor_parallel_is_named_where_that_is_enough(load: Callable[[str], Registry]) -> None:
    text = REGISTRY.replace("parameters_b: 8.3", "parameters_b: 32")
    with pytest.raises(UserFault, match=r"tensor parallel \(`serving: \{tensor_parallel: 2\}` in Charts\)"):
        plan(load(text), 2, 48, only=["Charts"])
    made = plan(
        load(text.replace("parameters_b: 32", "parameters_b: 32\n    serving: {tensor_parallel: 2}")),
        2,
        48,
        only=["Charts"],
    )
    assert where(made)["lab/charts-vl"][0] == [0, 1]


def test_all_models_of_unknown_size_are_named_at_once(load: Callable[[str], Registry]) -> None:
    text = REGISTRY.replace("parameters_b: 8.3", "aliases: []").replace("parameters_b: 0.9", "aliases: []")
    with pytest.raises(UserFault, match=r"not known: lab/charts-vl \(Charts\), lab/reader \(ocr\)"):
        plan(load(text), 4, 80)


def test_where_spreading_leads_into_a_corner_another_way_is_found() -> None:
    gpus = (Gpu(0, 10, 10), Gpu(1, 8, 8))
    made = place([model("a", 8), model("b", 6), model("c", 4)], gpus, utilization=1.0)
    assert made is not None
    assert {s.model.id: s.gpus[0].index for s in made.servers} == {"a": 1, "b": 0, "c": 0}


def test_memory_that_others_hold_is_not_given_out() -> None:
    made = place([model("a", 20)], (Gpu(0, 80, 30), Gpu(1, 80, 25)), utilization=0.9)
    assert made is not None
    assert (made.servers[0].gpus[0].index, made.servers[0].fraction) == (0, 0.375)
    assert place([model("a", 31)], (Gpu(0, 80, 30),), utilization=0.9) is None


def test_copies_of_a_model_are_servers_of_their_own(load: Callable[[str], Registry]) -> None:
    made = plan(
        load(REGISTRY.replace("parameters_b: 0.9", "parameters_b: 0.9\n    serving: {replicas: 2}")),
        2,
        80,
        only=["ocr"],
    )
    assert [(s.model.id, s.copy, s.gpus[0].index) for s in made.placement.servers] == [
        ("lab/reader", 0, 0),
        ("lab/reader", 1, 1),
    ]
    assert [(launch.name, launch.wanted_port) for launch in made.launches] == [
        ("lab/reader#1", 9304),
        ("lab/reader#2", 9305),
    ]


@settings(max_examples=40, deadline=None)
@given(
    needs=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    widths=st.lists(st.sampled_from([1, 1, 1, 2]), min_size=8, max_size=8),
    gpus=st.integers(1, 4),
)
def test_shares_hold_every_need_and_never_exceed_a_gpu(needs: list[int], widths: list[int], gpus: int) -> None:
    models = [
        model(f"m{i}", need, tensor_parallel=width) for i, (need, width) in enumerate(zip(needs, widths, strict=False))
    ]
    made = place(models, planned_gpus(range(gpus), 80), utilization=0.9)
    if made is None:
        return
    assert len(made.servers) == len(models)
    for server in made.servers:
        assert len(set(server.gpus)) == server.model.serving.tensor_parallel
        assert server.fraction * 80 >= server.memory.total_gib - 0.081
    for gpu in made.gpus:
        assert sum(server.fraction for server in made.on(gpu)) <= 0.9 + 1e-9


def test_a_model_of_an_expert_and_a_tool_is_served_once_and_for_both(registry: Registry) -> None:
    models, elsewhere = served_models(registry)
    general = next(m for m in models if m.id == "lab/general-9B")
    assert (general.users, general.context_tokens, general.max_images) == (("General", "caption"), 32768, 4)
    assert [m.id for m in models] == ["lab/charts-vl", "lab/general-9B", "lab/small-4b-it", "lab/reader"]
    assert [(part.name, part.urls) for part in elsewhere] == [("Hosted", ("https://models.example/v1",))]


def test_users_of_one_model_must_agree_on_how_it_is_served(load: Callable[[str], Registry]) -> None:
    caption = "backend: *general\n    serving: {tensor_parallel: 2}"
    general = "backend: &general\n      type"
    text = REGISTRY.replace("backend: *general", caption).replace(
        general, "serving: {tensor_parallel: 4}\n    " + general
    )
    with pytest.raises(UserFault, match="'General' and 'caption' use one model but differ in tensor_parallel: 4 and 2"):
        served_models(load(text))
    models, _ = served_models(load(REGISTRY.replace("backend: *general", caption)))
    assert models[1].serving.tensor_parallel == 2


def test_names_are_chosen_as_everywhere_and_programs_have_no_server(registry: Registry) -> None:
    assert [m.id for m in served_models(registry, ["CAPTION"])[0]] == ["lab/general-9B"]
    with pytest.raises(UserFault, match="did you mean 'Charts'"):
        served_models(registry, ["Chart"])
    with pytest.raises(UserFault, match="'detect' is a program in this process"):
        served_models(registry, ["detect"])
    with pytest.raises(UserFault, match="Hosted is served elsewhere"):
        served_models(registry, ["Hosted"])


def test_the_command_line_says_what_the_registry_says(registry: Registry) -> None:
    made = plan(registry, 4, 80)
    general, charts = made.launches[:2]
    assert general.command(9302) == (
        *("vllm", "serve", "lab/general-9B", "--served-model-name", "lab/general-9B"),
        *("--host", "127.0.0.1", "--port", "9302", "--max-model-len", "32768"),
        *("--limit-mm-per-prompt", '{"image": 4, "video": 0}', "--allowed-media-domains", "media.invalid"),
        "--disable-uvicorn-access-log",
        *("--trust-remote-code", "--gpu-memory-utilization", "0.900"),
    )
    assert general.env["CUDA_VISIBLE_DEVICES"] == "0"
    assert "--trust-remote-code" not in charts.command(9301)
    assert general.shell(9302).startswith("VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VIS")


def test_every_option_that_is_used_is_one_of_the_installed_vllm(load: Callable[[str], Registry]) -> None:
    found = importlib.util.find_spec("vllm")
    if found is None or not found.submodule_search_locations:
        pytest.skip("vLLM is not installed")
    home = Path(found.submodule_search_locations[0])
    source = (home / "engine/arg_utils.py").read_text() + (home / "entrypoints/openai/cli_args.py").read_text()
    text = REGISTRY.replace("parameters_b: 8.3", "parameters_b: 8.3\n    serving: {tensor_parallel: 2}")
    launches = [*plan(load(text), 4, 80).launches]
    launches += make_plan(load(text), (Gpu(None, 512, 512),), utilization=0.9, start=False, only=["ocr"]).launches
    used = {word for launch in launches for word in launch.words if word.startswith("--")}
    assert {"--allowed-media-domains", "--tensor-parallel-size", "--gpu-memory-utilization", "--enforce-eager"} <= used
    unknown = [
        word
        for word in used
        if f'"{word}"' not in source and not re.search(rf"^    {word[2:].replace('-', '_')}: ", source, re.MULTILINE)
    ]
    assert unknown == []


@pytest.mark.parametrize(
    "word", ["--port", "--port=1", "--trust-remote", "--served_model_name", "-tp", "--host", "--allowed-media-domains"]
)
def test_extra_words_cannot_take_the_launchers_own_options(load: Callable[[str], Registry], word: str) -> None:
    with pytest.raises(UserFault, match="is set by the launcher"):
        load(REGISTRY.replace("parameters_b: 0.9", f"parameters_b: 0.9\n    serving: {{extra_args: ['{word}']}}"))


def test_a_port_in_use_is_passed_over_and_said(registry: Registry) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        assert free_port(taken, ()) > taken
        text = REGISTRY.replace("9304", str(taken))
        path = Path(registry.places["tool", "ocr"][0])
        path.write_text(text)
        made = plan(Registry.load(path), 4, 80, only=["ocr"])
    assert made.launches[0].wanted_port > taken
    assert made.notes == (f"lab/reader: port {taken} is in use, so it gets {made.launches[0].wanted_port}",)


def test_a_model_folder_is_measured_instead_of_estimated(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with pytest.raises(UserFault, match="there is no model folder"):
        memory_of(ServedModel(str(folder), ("e",), (), 8192, 1))
    folder.mkdir()
    with pytest.raises(UserFault, match="holds no weights"):
        memory_of(ServedModel(str(folder), ("e",), (), 8192, 1))
    (folder / "model-1.safetensors").write_bytes(bytes(2**20))
    (folder / "model-2.safetensors").write_bytes(bytes(2**20))
    with pytest.raises(UserFault, match=r"no readable config\.json"):
        memory_of(ServedModel(str(folder), ("e",), (), 8192, 1))
    text = {"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
    (folder / "config.json").write_text(json.dumps({"text_config": text}))
    memory = memory_of(ServedModel(str(folder), ("e",), (), 8192, 1))
    assert (memory.weights_gib, memory.source) == (2 / 1024, "size on disk")
    assert memory.cache_gib == 144 * 8192 * 2 / 2**20  # 144 KiB a token, two requests of full length


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def _write(output: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n")
        program.chmod(0o755)

    return _write


def test_gpus_are_those_that_the_driver_names(nvidia_smi: Callable[[str], None], monkeypatch) -> None:
    nvidia_smi("0, 81920, 81000, NVIDIA A100-SXM4-80GB\n1, 81920, 40960, NVIDIA A100, odd")
    assert found_gpus() == (Gpu(0, 80.0, 79.1015625, "NVIDIA A100-SXM4-80GB"), Gpu(1, 80.0, 40.0, "NVIDIA A100, odd"))
    assert [gpu.index for gpu in found_gpus([1])] == [1]
    with pytest.raises(UserFault, match="GPU 2, 3 is not in this machine; it has 0, 1"):
        found_gpus([1, 2, 3])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [gpu.index for gpu in found_gpus()] == [1]
    for odd in ("GPU-aaaa,GPU-bbbb", ""):  # other people's GPUs are never taken for want of understanding
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", odd)
        with pytest.raises(UserFault, match="CUDA_VISIBLE_DEVICES is"):
            found_gpus()


def test_a_machine_without_gpus_is_told_so(nvidia_smi: Callable[[str], None]) -> None:
    with pytest.raises(UserFault, match="this machine has no nvidia-smi"):
        found_gpus()
    nvidia_smi("No devices were found")
    with pytest.raises(UserFault, match="names no GPU: No devices were found"):
        found_gpus()


@pytest.mark.parametrize("text", ["", "0,,1", "0,0", "-1", "a", "1.5", "9999"])
def test_a_list_of_gpus_that_is_none_is_one_message(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experts", "serve", "--dry-run", f"--gpus={text}", "--gpu-memory", "80"]) == 2
    assert "error: " in capsys.readouterr().err


def test_a_dry_run_prints_placement_sum_and_commands(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    path = registry.places["tool", "ocr"][0]
    words = ["experts", "serve", "--registry", path, "--dry-run", "--gpus", "0,1", "--gpu-memory", "48"]
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert "4 servers need 70.9 GiB of 86.4 GiB usable" in printed
    assert "Hosted is served elsewhere: https://models.example/v1" in printed
    commands = [line for line in printed.splitlines() if " serve lab/" in line]
    assert len(commands) == 4
    assert run([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [server["gpus"] for server in record["servers"]] == [["GPU 0"], ["GPU 1"], ["GPU 1"], ["GPU 0"]]
    assert [gpu["needed_gib"] for gpu in record["gpus"]] == [36.9, 33.9]


def test_a_dry_run_that_cannot_be_ends_with_exit_code_2(registry: Registry, capsys) -> None:
    words = ["experts", "serve", "--registry", registry.places["tool", "ocr"][0], "--dry-run", "--gpu-memory", "16"]
    assert run(words) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "fix: fewer models: --only ocr" in printed.err


def test_the_registry_of_the_paper_fits_on_one_node_of_the_paper() -> None:
    made = plan(Registry.load(ROOT / "configs/registry/paper.yaml"), 4, 80)
    assert {s.model.id: [gpu.index for gpu in s.gpus] for s in made.placement.servers} == {
        "zai-org/GLM-4.6V-Flash": [0],
        "Qwen/Qwen3-VL-8B-Instruct": [1],
        "internlm/Intern-S1-mini": [2],
        "DocTron/Chart-R1": [3],
        "ChenShawn/DeepEyes-7B": [3],
        "google/medgemma-1.5-4b-it": [2],
        "Kangheng/PR1-Qwen2.5-VL-3B-Detection": [1],
        "zai-org/GLM-OCR": [0],
    }


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


@pytest.mark.timeout(20)
def test_a_refusal_among_many_equal_gpus_does_not_search_for_ever() -> None:
    wide, large = model("wide", 10.0, tensor_parallel=8), model("large", 200.0)
    assert place([wide, large], planned_gpus(range(64), 80)) is None


def test_a_stated_need_counts_where_the_size_is_unknown(load: Callable[[str], Registry]) -> None:
    text = REGISTRY.replace("parameters_b: 8.3", "serving: {gpu_memory_gb: 200}")
    with pytest.raises(UserFault, match=r"lab/charts-vl: 200\.0 GiB"):
        plan(load(text), 2, 80)
