"""A registry of served models with tools, several subskills and repair loops, as the paper uses them."""

from __future__ import annotations

from pathlib import Path

from registry.registry import Registry
from registry.schema import OpenAIBackend, PythonBackend

SERVED = Path(__file__).parent / "served.yaml"


def test_its_parts_are_counted():
    registry = Registry.load(SERVED)
    assert len(registry.experts) == 5
    assert len(registry.skills) == 5
    assert sum(len(skill.subskills) for skill in registry.skills) == 9
    assert [tool.name for tool in registry.tools] == ["caption", "ocr", "detect", "zoom", "python"]


def test_experts_carry_replicas_sampling_limits_and_prices():
    expert = Registry.load(SERVED).expert("glm-4.6v-flash")
    assert isinstance(expert.backend, OpenAIBackend)
    assert [(one.url, one.weight) for one in expert.backend.replicas] == [
        ("http://node-a:8101/v1", 2.0),
        ("http://node-b:8101/v1", 1.0),
    ]
    assert expert.backend.api_key_env == "EXPERT_KEY"
    assert expert.backend.trust_remote_code is False
    assert (expert.sampling.temperature, expert.limits.max_images, expert.price.output_per_mtok) == (
        0.6,
        4,
        0.4,
    )


def test_remote_code_is_a_setting_of_the_one_expert_that_asks_for_it():
    registry = Registry.load(SERVED)
    trusting = [
        expert.name
        for expert in registry.experts
        if isinstance(expert.backend, OpenAIBackend) and expert.backend.trust_remote_code
    ]
    assert trusting == ["Intern-S1-mini"]


def test_a_tool_is_a_served_model_or_a_program():
    registry = Registry.load(SERVED)
    assert isinstance(registry.tool("ocr").backend, OpenAIBackend)
    program = registry.tool("python").backend
    assert isinstance(program, PythonBackend)
    assert program.options == {"timeout_s": 5, "network": False}


def test_a_code_skill_repairs_with_what_the_tool_reported():
    procedure = Registry.load(SERVED).skill("science problem solver").subskills[1].procedure
    assert procedure.repair is not None
    assert procedure.repair.when == "run.data.status != 'passed'"
    assert [step.tool for step in procedure.repair.steps] == [None, "python"]
