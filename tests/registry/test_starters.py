"""`maestro registry new`: starter files that hold as they are, and teach every field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from maestro.cli.registry_cmd import app
from registry.errors import UserFault
from registry.registry import Registry
from registry.schema import (
    Expert,
    Limits,
    OpenAIBackend,
    Price,
    Procedure,
    PythonBackend,
    Repair,
    Replica,
    Sampling,
    Serving,
    Skill,
    Step,
    Subskill,
)
from registry.starters import starter

KINDS = ("expert", "skill")


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def switched_on(text: str) -> str:
    """The starter with every optional field used."""
    return re.sub(r"^( *)#(?=\S)", r"\1", text, flags=re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["Leaf-Reader", "Leaf Questions", "on", "a #b", "\"x\" 'y'", "读叶", "1.10", "- x"])
def test_a_starter_loads_as_it_is(tmp_path: Path, kind, name):
    path = tmp_path / "starter.yaml"
    path.write_text(starter(kind, name), encoding="utf-8")
    registry = Registry.load("embedded", path)
    assert (registry.experts if kind == "expert" else registry.skills)[-1].name == name


@pytest.mark.parametrize("kind", KINDS)
def test_a_starter_loads_with_every_field_switched_on(tmp_path: Path, kind):
    text = starter(kind, "Leaf-Reader")
    path = tmp_path / "starter.yaml"
    path.write_text(switched_on(text), encoding="utf-8")
    part = (Registry.load("embedded", path).experts if kind == "expert" else Registry.load("embedded", path).skills)[-1]
    assert part.aliases == ("Leaf-Reader v1",)
    if isinstance(part, Expert):
        missing = set(Expert.model_fields) - part.model_fields_set
    else:
        missing = set(Skill.model_fields) - part.model_fields_set
        assert [step.tool for step in part.subskills[1].procedure.steps] == ["ocr", None]
    assert missing == set()


@pytest.mark.parametrize(
    ("kind", "models"),
    [
        ("expert", (Expert, OpenAIBackend, PythonBackend, Replica, Sampling, Limits, Price, Serving)),
        ("skill", (Skill, Subskill, Procedure, Repair, Step)),
    ],
)
def test_a_starter_names_every_field_there_is(kind, models: tuple[type[BaseModel], ...]):
    text = starter(kind, "X")
    fields = {field for model in models for field in model.model_fields} - {"name"}
    assert [field for field in sorted(fields) if not re.search(rf"\b{field}:", text)] == []


def test_new_writes_a_file_named_after_the_part_and_check_finds_no_fault(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "wrote leaf_reader.yaml" in run("new", "expert", "Leaf-Reader").stdout
    assert run("new", "skill", "Leaf Questions", "--out", "leaves.yaml").exit_code == 0
    result = run("check", "leaf_reader.yaml", "leaves.yaml")
    assert (result.exit_code, result.stdout.splitlines()[0][:9]) == (0, "No faults")


def test_new_prints_to_standard_output(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("new", "skill", "Leaves", "--out", "-").stdout == starter("skill", "Leaves")
    assert list(tmp_path.iterdir()) == []


def test_new_overwrites_only_when_told(tmp_path: Path):
    path = tmp_path / "mine.yaml"
    path.write_text("precious", encoding="utf-8")
    raised = run("new", "expert", "Leaf", "--out", str(path)).exception
    assert isinstance(raised, UserFault) and "exists already" in str(raised) and "--force" in str(raised)
    assert path.read_text() == "precious"
    assert run("new", "expert", "Leaf", "--out", str(path), "--force").exit_code == 0
    assert path.read_text().startswith("# An expert") and list(tmp_path.iterdir()) == [path]


def test_new_leaves_nothing_behind_where_it_cannot_write(tmp_path: Path):
    assert isinstance(run("new", "expert", "L", "--out", str(tmp_path / "no" / "x.yaml")).exception, OSError)
    assert isinstance(run("new", "expert", "L", "--out", str(tmp_path)).exception, UserFault)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_the_registry_has_is_written_as_a_replacement(tmp_path: Path):
    path = tmp_path / "mine.yaml"
    assert run("new", "expert", "geometer", "--out", str(path)).exit_code == 0
    assert "\n    replace: true" in path.read_text()
    assert len(Registry.load("embedded", path).experts) == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("expert", "A@@B"), "'@@', which the protocol uses"),
        (("expert", "  "), "no letter or digit"),
        (("skil", "Leaf"), "no starter for 'skil'"),
    ],
)
def test_new_refuses_what_cannot_be_a_part(tmp_path: Path, arguments, words):
    raised = run("new", *arguments, "--out", str(tmp_path / "x.yaml")).exception
    assert isinstance(raised, UserFault) and words in str(raised)
    assert list(tmp_path.iterdir()) == []
