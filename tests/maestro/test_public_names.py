"""`import maestro` costs nothing, and its names are the rooms' own."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import maestro


@pytest.mark.parametrize("name", maestro.__all__)
def test_every_public_name_is_the_one_of_its_room(name: str) -> None:
    home = importlib.import_module(maestro._HOMES[name])
    assert getattr(maestro, name) is getattr(home, name)


def test_the_list_of_public_names_is_the_table() -> None:
    assert sorted(maestro.__all__) == sorted(maestro._HOMES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'maestro' has no attribute 'nosuch'"):
        maestro.nosuch  # noqa: B018


def test_importing_maestro_imports_no_room() -> None:
    rooms = ["registry", "rewards", "experts", "orchestrator", "train", "eval"]
    script = f"import sys, maestro; print([room for room in {rooms} if room in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.stdout == "[]\n"
