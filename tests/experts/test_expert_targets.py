"""From a registry's target to a program: modules, entry points, and what an import costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experts.clients.load import load_class, make_program
from registry.errors import UserFault
from registry.schema import PythonBackend


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch) -> str:
    """An installed package that declares an expert and a broken tool."""
    name = f"plugin_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(
        "class Oracle:\n    def answer(self, prompt, pictures):\n        return '42'\n"
    )
    info = tmp_path / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[maestro.experts]\noracle = {name}:Oracle\n[maestro.tools]\nruler = {name}:Missing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_an_entry_point_of_another_package_is_found_by_name(plugin: str):
    program = make_program(PythonBackend(type="python", target="oracle"), "maestro.experts")
    assert program.answer("?", ()) == "42"
    assert load_class(f"{plugin}:Oracle", "maestro.experts") is type(program)


def test_a_misspelt_entry_point_is_refused_with_the_nearest_name(plugin: str):
    with pytest.raises(UserFault, match="did you mean 'oracle'"):
        load_class("oracel", "maestro.experts")


def test_experts_and_tools_are_different_groups(plugin: str):
    with pytest.raises(UserFault, match=r"no installed package has an entry point 'oracle'.*maestro\.tools"):
        load_class("oracle", "maestro.tools")


def test_a_broken_entry_point_says_where_it_points(plugin: str):
    with pytest.raises(UserFault, match=f"{plugin}:Missing"):
        load_class("ruler", "maestro.tools")


def test_wrong_options_are_named(plugin: str):
    backend = PythonBackend(type="python", target="oracle", options={"depth": 3})
    with pytest.raises(UserFault, match="with depth: TypeError"):
        make_program(backend, "maestro.experts")


def test_importing_the_pool_loads_nothing_heavy():
    heavy = ["torch", "transformers", "cv2", "rapidocr", "onnxruntime", "matplotlib", "openai"]
    script = (
        "import json, sys, experts.pool; "
        f"print(json.dumps([name for name in {heavy} if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == []
