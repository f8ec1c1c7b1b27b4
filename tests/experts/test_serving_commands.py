"""The servers of a plan: which models, under which names, and what their command lines are."""

from __future__ import annotations

import importlib.util
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from plan_doubles import REGISTRY, plan

from experts.serving.gpus import Gpu
from experts.serving.model import served_models
from experts.serving.plan import make_plan
from experts.serving.ports import free_port
from maestro.cli.app import run
from registry.errors import UserFault
from registry.registry import Registry


@pytest.fixture
def registry(load: Callable[[str], Registry]) -> Registry:
    return load(REGISTRY)


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
