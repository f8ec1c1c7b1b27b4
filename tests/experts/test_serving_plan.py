"""Which model goes where, and what is said when it cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_doubles import REGISTRY, ROOT, model, plan, where

from experts.serving.gpus import Gpu, planned_gpus
from experts.serving.memory import memory_of
from experts.serving.model import ServedModel
from experts.serving.placement import place
from registry.errors import UserFault
from registry.registry import Registry


@pytest.fixture
def registry(load: Callable[[str], Registry]) -> Registry:
    return load(REGISTRY)


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


@pytest.mark.timeout(20)
def test_a_refusal_among_many_equal_gpus_does_not_search_for_ever() -> None:
    wide, large = model("wide", 10.0, tensor_parallel=8), model("large", 200.0)
    assert place([wide, large], planned_gpus(range(64), 80)) is None


def test_a_stated_need_counts_where_the_size_is_unknown(load: Callable[[str], Registry]) -> None:
    text = REGISTRY.replace("parameters_b: 8.3", "serving: {gpu_memory_gb: 200}")
    with pytest.raises(UserFault, match=r"lab/charts-vl: 200\.0 GiB"):
        plan(load(text), 2, 80)
