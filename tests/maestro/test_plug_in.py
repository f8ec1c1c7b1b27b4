"""One dropped YAML file, no Python, no training: what it brings is listed, checked, routed, called and scored."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from typer.testing import CliRunner

import rewards
from experts.images import Picture, load_picture
from experts.outcome import Outcome
from experts.pool import ExpertPool
from maestro.cli.registry_cmd import app
from orchestrator.budget import Budget
from orchestrator.episode import Episode
from orchestrator.policies.keyword_router import KeywordRouter
from orchestrator.policy import PolicyTurn
from orchestrator.runner import run_episode
from orchestrator.task import Task
from registry.errors import RegistryFault
from registry.registry import Registry

BRICKS = """\
experts:
  Brick-Spotter:
    description: Finds toy bricks of one colour and counts them; replies with a number.
    backend: {type: python, target: "experts.embedded.shape_spotter:ShapeSpotter"}
    deterministic: true
skills:
  Brick_Inventory:
    description: Questions about toy bricks on a table; gives a number or a colour.
    subskills:
      Brick_Counting:
        description: Count the bricks of one colour.
        keywords: [bricks, brick]
        procedure:
          steps:
            - ask: |-
                Task: object_counting
                Question: {{ question | replace("brick", "square") }}
      Biggest_Brick:
        description: The colour of the largest brick.
        keywords: [biggest brick]
        procedure:
          steps:
            - {tool: detect, save: shapes}
            - ask: |-
                Task: colour_naming
                Shapes: {{ shapes.json }}
                Question: {{ question | replace("brick", "square") }}
"""
COUNT, BIGGEST = "How many red bricks are there?", "What is the colour of the biggest brick?"


@pytest.fixture
def dropped(tmp_path: Path) -> Path:
    path = tmp_path / "bricks.yaml"
    path.write_text(BRICKS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def table() -> Picture:
    """Three red squares, one green, and the largest blue."""
    image = Image.new("RGB", (320, 200), "white")
    draw = ImageDraw.Draw(image)
    squares = [(20, 20, 40, "red"), (100, 30, 40, "red"), (200, 20, 40, "red")]
    for x, y, side, colour in [*squares, (40, 110, 60, "blue"), (180, 120, 40, "green")]:
        draw.rectangle([x, y, x + side, y + side], fill=colour)
    return load_picture(image)


def run(*arguments: str):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exception is None, result.exception
    return result.stdout


def test_the_file_is_listed_checked_prompted_and_routed(dropped: Path):
    over = ["--registry", "embedded", "--registry", str(dropped)]
    shown = json.loads(run("show", *over, "--json"))
    assert [expert["name"] for expert in shown["experts"]][-2:] == ["Geometer", "Brick-Spotter"]
    assert shown["skills"][-1]["name"] == "Brick_Inventory"
    checked = json.loads(run("check", str(dropped), "--json"))
    assert (checked["ok"], checked["experts"], checked["skills"]) == (True, 6, 6)
    assert checked["brings"] == [
        {"kind": "expert", "name": "Brick-Spotter"},
        {"kind": "skill", "name": "Brick_Inventory"},
    ]
    prompt = run("prompt", *over)
    assert "- Brick-Spotter: Finds toy bricks of one colour and counts them; replies with a number.\n" in prompt
    assert "- Brick_Inventory: Questions about toy bricks on a table; gives a number or a colour.\n" in prompt
    for question, subskill, reason in [
        (COUNT, "Brick_Counting", "keyword:bricks"),
        (BIGGEST, "Biggest_Brick", "keyword:biggest brick"),
    ]:
        routed = json.loads(run("route", *over, "--skill", "brick inventory", "--question", question, "--json"))
        assert routed == {"skill": "Brick_Inventory", "subskill": subskill, "reason": reason}


def test_the_pool_delegates_to_it(dropped: Path, table: Picture):
    async def ask(question: str, skill: str = "Brick_Inventory"):
        async with ExpertPool(Registry.load("embedded", dropped)) as pool:
            return await pool.delegate("brick spotter", skill, question, [table])

    counted, biggest = asyncio.run(ask(COUNT)), asyncio.run(ask(BIGGEST))
    assert (counted.outcome, counted.text, counted.expert) == (Outcome.OK, "3", "Brick-Spotter")
    assert (biggest.outcome, biggest.text, biggest.subskill) == (Outcome.OK, "blue", "Biggest_Brick")
    # The new expert goes with the skills that were there before as well.
    assert asyncio.run(ask("How many red squares are there?", "Counting_Problem_Solver")).text == "3"


class Script:
    """A policy that says its lines in turn."""

    name = "script"

    def __init__(self, *lines: str) -> None:
        self.lines = lines

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        return PolicyTurn(self.lines[len(episode.turns)])

    async def aclose(self) -> None:
        """Holds nothing."""


@pytest.mark.parametrize(("answer", "total"), [("3", 1.0), ("4", 0.0)])
def test_an_episode_that_calls_it_is_scored(dropped: Path, table: Picture, answer: str, total: float):
    async def episode():
        async with ExpertPool(Registry.load("embedded", dropped)) as pool:
            task = Task("row", "tallyqa", "", COUNT, (table,), "3")
            call = f"<search> Brick-Spotter@@Brick_Inventory: {COUNT} </search>"
            policy = Script(call, f"<answer> {answer} </answer>")
            return await run_episode(task, policy, pool, budget=Budget(horizon=4))

    record = asyncio.run(episode()).to_json()
    assert record["turns"][0]["observation"]["text"].strip() == "3"
    result = rewards.reward(record)
    assert (result.valid, result.format, result.total) == (True, 0.0, total)


def test_a_router_that_knows_only_the_registry_finds_it(dropped: Path):
    before, after = KeywordRouter(Registry.load("embedded")), KeywordRouter(Registry.load("embedded", dropped))
    assert after.pick(COUNT, seed=0) == ("Brick-Spotter", "Brick_Inventory")
    assert before.pick(COUNT, seed=0) != after.pick(COUNT, seed=0)


def test_a_folder_of_dropped_files_is_one_registry(dropped: Path):
    expert, skill = BRICKS.split("\nskills:\n")
    folder = dropped.parent / "plugins"
    folder.mkdir()
    (folder / "expert.yaml").write_text(expert + "\n", encoding="utf-8")
    (folder / "skill.yaml").write_text("skills:\n" + skill, encoding="utf-8")
    assert Registry.load("embedded", folder) == Registry.load("embedded", dropped)


def test_an_expert_alone_is_checked_on_top_of_the_embedded_registry(tmp_path: Path):
    path = tmp_path / "expert.yaml"
    path.write_text(BRICKS.split("\nskills:\n")[0], encoding="utf-8")
    shown = json.loads(run("check", str(path), "--json"))
    assert (shown["ok"], shown["experts"]) == (True, 6)
    assert [Path(base).name for base in shown["on_top_of"]] == ["embedded.yaml"]


def test_a_clash_with_the_embedded_registry_is_a_fault_of_what_can_only_extend_it(tmp_path: Path):
    path = tmp_path / "expert.yaml"
    path.write_text(BRICKS.split("\nskills:\n")[0].replace("Brick-Spotter", "geometer"), encoding="utf-8")
    raised = CliRunner().invoke(app, ["check", str(path)]).exception
    assert isinstance(raised, RegistryFault)
    (fault,) = raised.faults
    assert (fault.file, fault.line) == (str(path), 2)
    assert "is already at" in fault.message and "write 'replace: true'" in fault.message


def test_a_whole_registry_is_checked_alone_and_the_clashes_are_told(tmp_path: Path):
    path = tmp_path / "whole.yaml"
    text = BRICKS.replace("Brick-Spotter", "Geometer").replace("            - {tool: detect, save: shapes}\n", "")
    path.write_text(text.replace("                Shapes: {{ shapes.json }}\n", ""), encoding="utf-8")
    assert json.loads(run("check", str(path), "--json"))["experts"] == 1
    told = " ".join(run("check", str(path)).split())
    assert "Checked standing alone; the files bring expert Geometer, skill Brick_Inventory." in told
    assert "Note: it can't extend the embedded registry, that would be 1 fault; the first: " in told
    assert "expert 'Geometer': is already at" in told


def test_every_fault_of_a_file_is_told_and_none_that_the_base_mends(dropped: Path):
    dropped.write_text(BRICKS.replace("keywords: [bricks", "keyword: [bricks").replace("detect", "detcet"))
    result = CliRunner().invoke(app, ["check", str(dropped), "--json"])
    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["ok"]) == (2, False)
    assert [(fault["line"], fault["hint"]) for fault in shown["faults"]] == [(12, "keywords"), (23, "detect")]


def test_the_file_is_checked_over_the_registry_that_is_named(dropped: Path, tmp_path: Path):
    other = tmp_path / "other.yaml"
    other.write_text("tools: {ocr: {description: d, backend: {type: python, target: t}}}\n", encoding="utf-8")
    raised = CliRunner().invoke(app, ["check", "--registry", str(other), str(dropped)]).exception
    assert isinstance(raised, RegistryFault)
    assert [fault.message.split(": ")[-1] for fault in raised.faults] == ["no tool 'detect'"]


def test_loading_leaves_pythons_garbage_collector_on(dropped: Path):
    Registry.load("embedded", dropped)
    with pytest.raises(RegistryFault):
        Registry.load(dropped)
    assert gc.isenabled()


def test_a_shipped_registry_is_known_by_its_name_from_any_folder(dropped: Path, monkeypatch):
    monkeypatch.chdir(dropped.parent)
    assert Registry.load("embedded") == Registry.load()
    with pytest.raises(RegistryFault, match=r"embeded: no such file or folder \(did you mean 'embedded'\?\)"):
        Registry.load("embeded")
