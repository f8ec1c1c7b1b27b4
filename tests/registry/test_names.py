"""Names: one normalisation, exact hits only, nearest names for a miss."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import UnknownName, UserFault
from registry.names import name_fault, nearest, normalise
from registry.registry import Registry
from registry.schema import Expert, PythonBackend, Tool


def expert(name: str, *aliases: str) -> Expert:
    backend = PythonBackend(type="python", target="some_package.experts:Reader")
    return Expert(name=name, aliases=aliases, description="Reads.", backend=backend)


def test_case_spaces_hyphens_and_underscores_do_not_matter():
    assert normalise("Chart_Problem_Solver") == "chart_problem_solver"
    assert normalise("  chart-problem   SOLVER ") == "chart_problem_solver"
    assert normalise("Chart - _ Problem\tSolver_") == "chart_problem_solver"


def test_full_width_letters_are_the_same_letters():
    assert normalise("Ｃｈａｒｔ－Ｒ１") == "chart_r1"


@given(st.text())
def test_normalising_twice_changes_nothing(text: str):
    assert normalise(normalise(text)) == normalise(text)


def test_names_that_the_protocol_could_not_carry_are_refused():
    assert name_fault("Chart@@R1") == "the name 'Chart@@R1' holds '@@', which the protocol uses"
    assert name_fault("Chart: R1") == "the name 'Chart: R1' holds ':', which the protocol uses"
    assert name_fault("Chart：R1") == "the name 'Chart：R1' holds ':', which the protocol uses"
    assert name_fault("＠＠x") is not None
    assert name_fault("</search>") == "the name '</search>' holds '<', which the protocol uses"
    assert name_fault("a>b") is not None
    assert name_fault("R1@") == "the name 'R1@' begins or ends with '@', which would run into '@@'"
    assert name_fault(" -_ ") == "' -_ ' is not a name: it has no letter or digit"
    assert name_fault("a\u200bb") == "the name 'a\\u200bb' holds the invisible character U+200B"
    assert name_fault("x" * 101) is not None


def test_ordinary_names_of_all_scripts_are_accepted():
    for name in ("GLM-4.6V-Flash", "org/model", "图表专家", "Zähler 2", "on", "1.10"):
        assert name_fault(name) is None


def test_nearest_names_come_best_first():
    names = ["Chart-Reader", "Geometer", "Line-Tracer", "Chart_Problem_Solver"]
    assert nearest("chartreader", names)[0] == "Chart-Reader"
    assert nearest("Chart", names) == ("Chart-Reader", "Chart_Problem_Solver")
    assert nearest("zzzzz", names) == ()


def test_a_name_is_found_in_any_spelling_and_by_alias():
    registry = Registry(experts=(expert("Chart-Reader", "DocTron/Chart-R1"), expert("Geometer")))
    assert registry.expert("chart reader").name == "Chart-Reader"
    assert registry.expert("doctron/chart_r1").name == "Chart-Reader"


@pytest.mark.parametrize("miss", ["encode", "Chart-Reade", "Chart-Reader-2", "Reader", ""])
def test_a_near_miss_is_refused_not_guessed(miss: str):
    registry = Registry(experts=(expert("Chart-Reader"), expert("Code")))
    with pytest.raises(UnknownName):
        registry.expert(miss)


def test_an_unknown_name_says_what_it_might_have_been():
    registry = Registry(experts=(expert("Chart-Reader"), expert("Geometer")))
    with pytest.raises(UnknownName) as caught:
        registry.expert("Chart-Reeder")
    fault = caught.value
    assert (fault.kind, fault.name, fault.suggestions) == ("expert", "Chart-Reeder", ("Chart-Reader",))
    assert str(fault) == "unknown expert 'Chart-Reeder'\n  fix: did you mean 'Chart-Reader'?"
    assert isinstance(fault, UserFault) and isinstance(fault, KeyError)


def test_skills_and_tools_are_looked_up_the_same_way():
    backend = PythonBackend(type="python", target="ocr")
    registry = Registry(tools=(Tool(name="Read Text", description="Text.", backend=backend),))
    assert registry.tool("read-text").name == "Read Text"
    with pytest.raises(UnknownName, match="unknown skill 'read-text'"):
        registry.skill("read-text")


def test_faults_survive_the_way_to_another_process():
    fault = pickle.loads(pickle.dumps(UnknownName("skill", "Char", ("Chart",))))
    assert (fault.kind, fault.name, fault.suggestions) == ("skill", "Char", ("Chart",))
    assert str(fault) == "unknown skill 'Char'\n  fix: did you mean 'Chart'?"


def test_a_user_fault_says_what_where_and_what_to_do():
    fault = UserFault("the file is empty", where="a.yaml", fix="write something into it")
    assert str(fault) == "the file is empty\n  where: a.yaml\n  fix: write something into it"
