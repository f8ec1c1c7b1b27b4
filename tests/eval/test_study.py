"""Several evaluations in one file: what runs, what is left out, what is kept, and the one table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from made_benchmark import YAML as BIRDS
from typer.testing import CliRunner

from eval.study import load_study
from eval.study_run import plan, run_study
from maestro.cli import app as application
from maestro.cli.evaluate_study import study as command
from registry.errors import UserFault

CONFIGS = Path(__file__).parents[2] / "configs" / "eval"
EXPERTS = """
class Reader:
    def answer(self, prompt, pictures):
        return prompt.split()[-1]


class Liar:
    def answer(self, prompt, pictures):
        return "nothing"
"""
REGISTRY = """
experts:
  Reader:
    description: reads words
    backend: {type: python, target: "study_doubles:Reader"}
skills:
  Reading:
    description: reading
    subskills:
      read: {description: reads, procedure: {steps: [{ask: "{{ question }}"}]}}
"""
MORE = """
experts:
  Liar:
    description: lies
    backend: {type: python, target: "study_doubles:Liar"}
skills:
  Lying:
    description: lying
    subskills:
      lie: {description: lies, procedure: {steps: [{ask: "{{ question }} lie"}]}}
"""
BASE = """
benchmark: exact
run: elsewhere
rows: {{test: 4, validation: 4}}
parquet: {{test: {rows}, validation: {rows}}}
arms:
  not_run: {{kind: random_pair}}
concurrency: 1
expert_concurrency: 2
"""
STUDY = """
title: Words
folder: {folder}
base: base.yaml
registry: [registry.yaml]
members:
  alone:
    about: one expert
    arms:
      reader: {{kind: single_expert, expert: Reader}}
      best: {{kind: best_expert}}
      bm25: {{kind: retrieval, method: bm25}}
  more:
    registry: [registry.yaml, more.yaml]
    set: {{seed: 5, rows.test: 3}}
    arms:
      liar: {{kind: single_expert, expert: Liar}}
      lying: {{kind: single_expert, expert: Reader, skill: Lying}}
      small: {{kind: random_pair, pool: {{experts: [Reader], skills: [Reading]}}}}
      near: {{kind: retrieval, method: embedding}}
  later:
    optional: true
    policies: {{trained: {{path: nowhere/policy}}}}
    arms:
      trained: {{kind: policy, policy: trained}}
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import io

    from PIL import Image

    from eval.benchmarks.parquet import write_parquet
    from eval.benchmarks.row import Row

    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), "white").save(buffer, "PNG")
    rows = [
        Row(
            id=f"{index}",
            benchmark="exact",
            question=f"say word{index}",
            pictures=(buffer.getvalue(),),
            answer=f"word{index}",
            group="words",
            split="test",
            extra={},
        )
        for index in range(4)
    ]
    write_parquet(rows, tmp_path / "rows.parquet", system_prompt=None)
    files = {"study_doubles.py": EXPERTS, "registry.yaml": REGISTRY, "more.yaml": MORE}
    files |= {"base.yaml": BASE.format(rows=tmp_path / "rows.parquet")}
    files |= {"study.yaml": STUDY.format(folder=tmp_path / "out")}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "study.yaml"


def test_every_member_runs_in_its_own_folder_and_one_table_holds_all(study: Path) -> None:
    ran = run_study(load_study(study))
    accuracy = {(line.member, line.arm): line.accuracy for line in ran.lines}
    assert accuracy == {
        ("alone", "reader"): 1.0,
        ("alone", "best"): 1.0,
        ("alone", "bm25"): 1.0,
        ("more", "liar"): 0.0,
        ("more", "lying"): 0.0,
        ("more", "small"): 1.0,
        ("more", "near"): 1.0,
    }
    assert ran.failed == {} and "nowhere/policy" in ran.left_out["later"]
    assert [line.n for line in ran.lines] == [4, 4, 4, 3, 3, 3, 3]
    out = study.parent / "out"
    assert json.loads((out / "alone" / "results.json").read_text())["status"] == "complete"
    assert json.loads((out / "study.json").read_text())["runs"]["more"] == str(out / "more")
    table = (out / "study.md").read_text()
    assert "| alone | reader | 1.000 |" in table and "left out: later: no checkpoint in" in table


def test_what_ran_is_not_run_again_and_a_part_keeps_the_other_lines(study: Path) -> None:
    run_study(load_study(study))
    journal = study.parent / "out" / "more" / "journal.jsonl"
    before = journal.read_bytes()
    ran = run_study(load_study(study, only=["more"]))
    assert {line.member for line in ran.lines} == {"more"}
    assert journal.read_bytes() == before
    kept = json.loads((study.parent / "out" / "study.json").read_text())["lines"]
    assert {line["member"] for line in kept} == {"alone", "more"}


def test_a_member_that_fails_leaves_the_others_alone(study: Path) -> None:
    run_study(load_study(study, only=["alone"]))
    ran = run_study(load_study(study, ["seed=9"]))  # the folder of `alone` belongs to another seed
    assert "seed: 0 -> 9" in ran.failed["alone"]
    assert {line.member for line in ran.lines} == {"more"}


def test_a_plan_counts_episodes_and_runs_nothing(study: Path) -> None:
    planned = {one.member.name: one for one in plan(load_study(study))}
    assert planned["alone"].episodes == {"reader": 4, "best": 4, "bm25": 4}
    assert (planned["alone"].validation_calls, planned["alone"].pairs) == (4, (1, 1))
    assert (planned["more"].total, planned["more"].pairs) == (12, (2, 2))
    assert planned["later"].member.missing and not (study.parent / "out").exists()


def test_one_member_may_stand_for_several_benchmarks(study: Path) -> None:
    text = study.read_text().replace("    about: one expert\n", "    benchmarks: [slake, own/birds.yaml]\n", 1)
    study.write_text(text)
    own = study.parent / "own" / "birds.yaml"  # looked for beside the study
    own.parent.mkdir()
    own.write_text(BIRDS)
    found = load_study(study, only=["alone"])
    assert [(one.name, one.config.benchmark) for one in found.members] == [
        ("alone-slake", "slake"),
        ("alone-birds", str(own)),
    ]
    assert [one.name for one in load_study(study, only=["alone-birds"]).members] == ["alone-birds"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: best_expert", "kind: best_exprt", "members.alone.arms.best.kind"),
        ("title: Words", "titel: Words", "did you mean 'title'"),
        ("set: {seed: 5", "set: {sede: 5", "member 'more': 1 fault in the configuration"),
        ("  alone:", "  ../alone:", "a member's name is a folder's"),
    ],
)
def test_faults_name_the_member_or_the_line(study: Path, old: str, new: str, message: str) -> None:
    study.write_text(study.read_text().replace(old, new))
    with pytest.raises(UserFault) as caught:
        load_study(study)
    assert message in str(caught.value)


def test_an_unknown_member_is_refused_with_the_nearest(study: Path) -> None:
    with pytest.raises(UserFault, match="did you mean 'alone'"):
        load_study(study, only=["alon"])


def test_the_command_lists_and_runs(study: Path) -> None:
    cli = typer.Typer()
    cli.command()(command)
    listed = CliRunner().invoke(cli, [str(study), "--dry-run", "--json"], catch_exceptions=False)
    assert json.loads(listed.stdout)["more"]["episodes"]["liar"] == 3
    shown = CliRunner().invoke(cli, [str(study), "--dry-run"], env={"COLUMNS": "80"}, catch_exceptions=False)
    assert max(map(len, shown.stdout.splitlines())) <= 80
    done = CliRunner().invoke(cli, [str(study), "--only", "alone", "--json"], catch_exceptions=False)
    assert [line["arm"] for line in json.loads(done.stdout)["lines"]] == ["reader", "best", "bm25"]
    assert ("evaluate", "study") in application.SECOND_WORDS


@pytest.mark.parametrize("name", ["study_embedded.yaml", "study_paper.yaml"])
def test_the_studies_of_this_project_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    planned = list(plan(load_study(CONFIGS / name)))
    kinds = {arm.kind for one in planned for arm in one.member.config.arms.values()}
    ablations = {arm.without for one in planned for arm in one.member.config.arms.values()}
    assert {"policy", "direct", "single_expert", "best_expert", "random_pair", "retrieval"} <= kinds
    assert ablations == {None, "skills", "experts", "both"}
    arms = {arm for one in planned for arm in one.member.config.arms}
    assert {"skills_2", "skills_4", "skills_5", "skills_8", "without_r_fmt", "without_r_ans"} <= arms
