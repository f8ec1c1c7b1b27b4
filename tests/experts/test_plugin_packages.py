"""Experts and tools of another installed package: named by their entry points, they take part like our own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PIL import Image

from experts.images import load_picture
from experts.outcome import Delegation, Outcome
from experts.pool import ExpertPool
from registry.errors import UserFault
from registry.registry import Registry

PICTURE = load_picture(Image.new("RGB", (120, 80), (10, 20, 30)))

PACKAGE = """
from experts.tools.result import ToolResult


class Oracle:
    def __init__(self, mood="calm"):
        self.mood = mood

    def answer(self, prompt, pictures):
        sizes = [f"{picture.width}x{picture.height}" for picture in pictures]
        return f"{self.mood}: {prompt} {sizes}"


class Ruler:
    def __init__(self, unit):
        self.unit = unit

    def run(self, picture, **args):
        part = picture.crop((0, 0, 40, 40))
        return ToolResult(f"{picture.width} {self.unit} {args['side']}", {"width": picture.width}, (part,))
"""

REGISTRY = """\
experts:
  Oracle:
    description: d
    backend: {type: python, target: delphi-oracle, options: {mood: grim}}
tools:
  measure:
    description: d
    backend: {type: python, target: delphi-ruler, options: {unit: px}}
skills:
  Ask:
    description: d
    subskills:
      a:
        description: d
        procedure:
          steps:
            - {tool: measure, save: size, args: {side: wide}}
            - {ask: "{{ question }} {{ size.text }} {{ size.data.width }}", images: [size]}
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry file beside an installed package that is not ours."""
    name = f"delphi_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PACKAGE)
    info = tmp_path / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[maestro.experts]\ndelphi-oracle = {name}:Oracle\n\n[maestro.tools]\ndelphi-ruler = {name}:Ruler\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "registry.yaml"
    path.write_text(REGISTRY)
    return path


def delegate(path: Path) -> Delegation:
    async def main() -> Delegation:
        async with ExpertPool(Registry.load(path)) as pool:
            await pool.prepare()
            return await pool.delegate("Oracle", "Ask", "How wide?", (PICTURE,))

    return asyncio.run(main())


def test_an_expert_and_a_tool_of_another_package_carry_out_a_delegation(registry: Path):
    done = delegate(registry)
    assert (done.outcome, done.error) == (Outcome.OK, None)
    assert done.text == "grim: How wide? 120 px wide 120 ['40x40']"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("delphi-ruler", "delphi-rule", r"no installed package has an entry point 'delphi-rule'.*'delphi-ruler'"),
        ("delphi-ruler", "delphi-oracle", r"no installed package has an entry point 'delphi-oracle'.*maestro\.tools"),
        ("target: delphi-oracle", "target: delphi-ruler", r"'delphi-ruler' in the group 'maestro\.experts'"),
        ("{unit: px}", "{units: px}", r"cannot make 'delphi-ruler' with units: TypeError"),
    ],
)
def test_a_wrong_name_or_option_is_the_users_fault_before_anything_is_asked(registry: Path, old, new, words):
    registry.write_text(REGISTRY.replace(old, new))
    with pytest.raises(UserFault, match=f"(?s){words}"):
        delegate(registry)
