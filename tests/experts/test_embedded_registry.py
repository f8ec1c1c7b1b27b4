"""The embedded registry and its programs fit together: tasks are known, skills reach their subskills."""

from __future__ import annotations

import asyncio
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from experts.embedded.program import Program
from registry.registry import Registry, default_registry_path
from registry.routing import classify_prompt, map_label, route
from registry.schema import PythonBackend


@pytest.fixture(scope="module")
def embedded() -> Registry:
    return Registry.load(Path(default_registry_path()))


def programs(registry: Registry) -> dict[str, Program]:
    made = {}
    for expert in registry.experts:
        assert isinstance(expert.backend, PythonBackend)
        module, _, name = expert.backend.target.partition(":")
        made[expert.name] = getattr(import_module(module), name)(**expert.backend.options)
    return made


def test_five_experts_five_skills_ten_subskills_three_tools(embedded: Registry) -> None:
    assert [expert.name for expert in embedded.experts] == [
        "Chart-Reader", "Contour-Analyst", "Line-Tracer", "Shape-Spotter", "Geometer",
    ]  # fmt: skip
    assert [skill.name for skill in embedded.skills] == [
        "Chart_Problem_Solver", "Counting_Problem_Solver", "Perception_Problem_Solver",
        "Geometric_Problem_Solver", "Diagram_Reasoning_Skill",
    ]  # fmt: skip
    assert sum(len(skill.subskills) for skill in embedded.skills) == 10
    assert [tool.name for tool in embedded.tools] == ["ocr", "detect", "zoom"]
    assert all(part.deterministic for part in (*embedded.experts, *embedded.tools))


def test_every_task_in_a_procedure_is_known_to_a_program(embedded: Registry) -> None:
    known = {task for program in programs(embedded).values() for task in program.tasks}
    for skill in embedded.skills:
        for subskill in skill.subskills:
            asks = [step.ask for step in subskill.procedure.steps if step.ask]
            tasks = [match[1] for ask in asks if (match := re.search(r"Task: (\w+)", ask))]
            assert tasks == [subskill.name.lower()], f"{skill.name}/{subskill.name}"
            assert set(tasks) <= known


def test_only_charts_and_geometry_have_texts_read(embedded: Registry) -> None:
    reading = {
        skill.name
        for skill in embedded.skills
        for subskill in skill.subskills
        if any(step.tool == "ocr" for step in subskill.procedure.steps)
    }
    assert reading == {"Chart_Problem_Solver", "Geometric_Problem_Solver"}


@pytest.mark.parametrize(
    ("skill", "question", "subskill"),
    [
        ("Chart_Problem_Solver", "What is the value of Kalomi?", "Value_Reading"),
        ("Chart_Problem_Solver", "Which bar has the highest value?", "Extreme_Finding"),
        ("Counting_Problem_Solver", "How many squares are there?", "Object_Counting"),
        ("Counting_Problem_Solver", "Count the rows and columns of the table.", "Grid_Sizing"),
        ("Perception_Problem_Solver", "Which one is the largest?", "Colour_Naming"),
        ("Perception_Problem_Solver", "Is the red star below the blue circle?", "Position_Judging"),
        ("Geometric_Problem_Solver", "How long is the side x?", "Right_Triangle"),
        ("Diagram_Reasoning_Skill", "Do they touch each other?", "Contact_Check"),
        ("Diagram_Reasoning_Skill", "How many squares are there?", "Nesting_Depth"),
        ("Diagram_Reasoning_Skill", "How many lines go from A to D?", "Route_Following"),
    ],
)
def test_keywords_lead_to_the_subskill(embedded: Registry, skill: str, question: str, subskill: str) -> None:
    assert asyncio.run(route(embedded.skill(skill), question, None)).subskill.name == subskill


class White:
    def rgb(self) -> np.ndarray:
        return np.full((64, 64, 3), 255, np.uint8)


@pytest.mark.parametrize(
    ("expert", "skill", "label"),
    [
        ("Line-Tracer", "Diagram_Reasoning_Skill", "Contact_Check"),
        ("Contour-Analyst", "Diagram_Reasoning_Skill", "Nesting_Depth"),
        ("Line-Tracer", "Counting_Problem_Solver", "Grid_Sizing"),
        ("Shape-Spotter", "Counting_Problem_Solver", "Object_Counting"),
        ("Chart-Reader", "Chart_Problem_Solver", "Value_Reading"),
        ("Geometer", "Counting_Problem_Solver", None),
    ],
)
def test_experts_choose_among_the_labels_that_they_know(
    embedded: Registry, expert: str, skill: str, label: str | None
) -> None:
    asked = embedded.skill(skill)
    reply = programs(embedded)[expert].answer(classify_prompt(asked, "What about it?"), [White()])
    chosen = map_label(asked, reply)
    assert (chosen.name if chosen else None) == label
