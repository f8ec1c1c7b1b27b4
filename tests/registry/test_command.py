"""`maestro registry`: what each command prints, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maestro.cli.registry_cmd import app
from registry.errors import RegistryFault, UnknownName, UserFault

SERVED = str(Path(__file__).parent / "served.yaml")
SMALL = """\
    experts:
      "[bold]Reader":
        {description: "Reads [red]text[/red].", backend: {type: python, target: "json:JSONDecoder"}}
    skills:
      读图:
        description: Charts.
        default: pie
        subskills:
          bar: {description: d, keywords: [bar], procedure: {steps: [{ask: q}]}}
          pie: {description: d, keywords: [饼图], procedure: {steps: [{ask: q}]}}
    """


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_show_lists_everything_as_one_json_object():
    result = run("show", "--registry", SERVED, "--json")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert [expert["name"] for expert in shown["experts"]][1] == "Chart-R1"
    skills = {skill["name"]: [sub["name"] for sub in skill["subskills"]] for skill in shown["skills"]}
    assert skills["Chart Problem Solver"] == ["Bar Chart Solver", "Line Chart Solver", "Pie Chart Solver"]
    assert [tool["name"] for tool in shown["tools"]] == ["caption", "ocr", "detect", "zoom", "python"]


def test_show_prints_tables_without_reading_names_as_markup(write, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    result = run("show", "--registry", str(write(SMALL)))
    assert result.exit_code == 0
    assert "[bold]Reader" in result.stdout and "Reads [red]text[/red]." in result.stdout
    assert "读图 (auto)" in result.stdout and "pie (default)" in result.stdout


def test_check_says_that_there_is_no_fault(write):
    result = run("check", "--registry", str(write(SMALL)))
    assert (result.exit_code, result.stdout) == (0, "No faults: 1 expert, 1 skill, 2 subskills, 0 tools.\n")
    shown = json.loads(run("check", "--registry", str(write(SMALL)), "--json").stdout)
    assert (shown["ok"], shown["faults"], shown["subskills"]) == (True, [], 2)


def test_check_raises_all_faults_and_in_json_exits_with_2(write):
    path = str(write("tools:\n  a: {}\n  b: {descripton: d, backend: {type: python, target: t}}\n"))
    raised = run("check", "--registry", path).exception
    assert isinstance(raised, RegistryFault) and len(raised.faults) == 4
    result = run("check", "--registry", path, "--json")
    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["ok"]) == (2, False)
    assert [fault["line"] for fault in shown["faults"]] == [2, 2, 3, 3]
    assert {"description"} == {fault["hint"] for fault in shown["faults"] if fault["hint"]}


@pytest.mark.parametrize(
    ("target", "message"),
    [("no_such_package_xyz:Reader", "cannot import"), ("json:Reader", "has no 'Reader'")],
)
def test_check_finds_programs_that_are_not_there(write, target, message):
    path = str(write(SMALL.replace("json:JSONDecoder", target)))
    raised = run("check", "--registry", path).exception
    assert isinstance(raised, RegistryFault)
    (fault,) = raised.faults
    assert message in fault.message and (fault.file, fault.line) == (path, 2)


def test_registries_add_up_in_the_given_order(write):
    base = write(SMALL, "1.yaml")
    extra = write("tools: {t: {description: d, backend: {type: python, target: t}}}", "2.yaml")
    shown = json.loads(run("show", "--registry", str(base), "--registry", str(extra), "--json").stdout)
    assert (len(shown["experts"]), [tool["name"] for tool in shown["tools"]]) == (1, ["t"])


def test_prompt_prints_the_text_as_it_is(write):
    path = str(write(SMALL))
    result = run("prompt", "--registry", path, "--style", "compact", "--horizon", "2")
    assert result.stdout.splitlines()[0] == "Delegate (at most 2): <search> Expert@@Skill: question </search>"
    assert "Experts: [bold]Reader\n" in result.stdout
    shown = json.loads(run("prompt", "--registry", path, "--json").stdout)
    assert shown["style"] == "full" and "- [bold]Reader: Reads [red]text[/red]." in shown["prompt"]


def test_an_unknown_style_is_the_users_fault(write):
    assert isinstance(run("prompt", "--registry", str(write(SMALL)), "--style", "x").exception, UserFault)


@pytest.mark.parametrize(
    ("question", "subskill", "reason"),
    [
        ("the bar", "bar", "keyword:bar"),
        ("这个饼图", "pie", "keyword:饼图"),
        ("which?", "pie", "default"),
    ],
)
def test_route_gives_subskill_and_reason(write, question, subskill, reason):
    arguments = ["--registry", str(write(SMALL)), "--skill", "读图", "--question", question]
    shown = json.loads(run("route", *arguments, "--json").stdout)
    assert shown == {"skill": "读图", "subskill": subskill, "reason": reason}
    plain = run("route", *arguments).stdout
    assert subskill in plain and reason in plain


def test_route_to_an_unknown_skill_is_the_users_fault(write):
    raised = run("route", "--registry", str(write(SMALL)), "--skill", "bars", "--question", "q").exception
    assert isinstance(raised, UnknownName)


def test_a_missing_file_is_the_users_fault(tmp_path):
    raised = run("show", "--registry", str(tmp_path / "none.yaml")).exception
    assert isinstance(raised, RegistryFault) and "no such file or folder" in str(raised)
