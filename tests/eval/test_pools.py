"""What an ablated arm may call: parts of the registry, no skills, no experts, neither."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from eval.arms import Choices, build_policy
from eval.config import EvalConfig, load_eval_config
from eval.matrix import Cell, Matrix
from eval.plain import best_expert
from eval.pools import Measured, Pools
from eval.variants import variants
from experts.images import Picture
from experts.outcome import Delegation, Outcome
from orchestrator.action import Malformed, Search
from orchestrator.protocol import parse_turn
from registry.errors import UserFault
from registry.prompt import system_prompt
from registry.registry import Registry

CONFIG = """\
benchmark: embedded
run: runs/x
rows: {{test: 4, validation: 4}}
policies: {{mine: {{path: policy}}}}
arms:
  {arm}
  after: {{kind: policy, policy: mine}}
{more}
"""
CHART, SHAPES = "Chart-Reader", "Shape-Spotter"


def pools(tmp_path: Path, arm: str, more: str = "") -> Pools:
    path = tmp_path / "eval.yaml"
    path.write_text(CONFIG.format(arm=f"it: {arm}", more=more))
    return Pools(load_eval_config(path), Registry.load())


def read(registry: Registry, call: str) -> Search | Malformed:
    action = parse_turn(f"<search> {call}: how many? </search>", registry)
    assert isinstance(action, Search | Malformed)
    return action


class Log:
    """A pool double that writes down what it is asked."""

    registry = Registry.load()

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def delegate(
        self, expert: str, skill: str, question: str, pictures: Sequence[Picture], *, deadline_s: float | None = None
    ) -> Delegation:
        self.asked.append((expert, skill))
        return Delegation(Outcome.OK, "7", expert, skill)


def test_an_arm_without_ablation_sees_the_registry_itself(tmp_path: Path) -> None:
    made = pools(tmp_path, "{kind: policy, policy: mine, without: skills}")
    assert made.seen_by("after", Measured()) is made.registry
    assert "Plain Question" not in system_prompt(made.seen_by("after", Measured()), "full")


def test_without_skills_every_named_skill_asks_the_named_expert_plainly(tmp_path: Path) -> None:
    made = pools(tmp_path, "{kind: policy, policy: mine, without: skills}")
    log = Log()
    view = made.view("it", Measured(), log)
    action = read(view.registry, f"{SHAPES}@@counting problem solver")
    assert action == Search(SHAPES, "Plain Question", "how many?")
    asyncio.run(view.delegate(SHAPES, "Counting_Problem_Solver", "how many?", ()))
    assert log.asked == [(SHAPES, "Plain Question")]
    prompt = system_prompt(view.registry, "full")
    assert "Counting_Problem_Solver" not in prompt and "- Plain Question: " in prompt and f"- {CHART}: " in prompt
    steps = made.everything.skill("Plain Question").subskills[0].procedure.steps
    assert [step.ask for step in steps] == ["{{ question }}"]


def test_without_experts_one_expert_takes_every_call_under_the_named_skill(tmp_path: Path) -> None:
    made = pools(tmp_path, f"{{kind: policy, policy: mine, without: experts, stand_in: {CHART}}}")
    seen = made.seen_by("it", Measured())
    assert read(seen, "Geometer@@Chart_Problem_Solver") == Search(CHART, "Chart_Problem_Solver", "how many?")
    assert [expert.name for expert in seen.experts] == [CHART]
    assert len(seen.skills) == 5


def test_without_both_one_expert_is_asked_plainly(tmp_path: Path) -> None:
    made = pools(tmp_path, f"{{kind: policy, policy: mine, without: both, stand_in: {CHART}}}")
    action = read(made.seen_by("it", Measured()), "Geometer@@Geometric_Problem_Solver")
    assert action == Search(CHART, "Plain Question", "how many?")


def test_what_a_smaller_pool_leaves_out_cannot_be_called(tmp_path: Path) -> None:
    arm = "{kind: policy, policy: mine, pool: {skills: [geometric problem solver, Chart_Problem_Solver]}}"
    seen = pools(tmp_path, arm).seen_by("it", Measured())
    assert [skill.name for skill in seen.skills] == ["Chart_Problem_Solver", "Geometric_Problem_Solver"]
    refused = read(seen, f"{SHAPES}@@Counting_Problem_Solver")
    assert isinstance(refused, Malformed) and refused.kind == "unknown_skill"


def test_the_best_stand_in_is_chosen_on_what_was_measured(tmp_path: Path) -> None:
    cells = {
        ((CHART, "Chart_Problem_Solver"), "bars"): Cell(9, 10),
        ((SHAPES, "Counting_Problem_Solver"), "shapes"): Cell(8, 10),
        ((SHAPES, "Perception_Problem_Solver"), "bars"): Cell(2, 10),
    }
    matrix = Matrix(tuple(pair for pair, _ in cells), ("bars", "shapes"), cells)
    assert best_expert(matrix) == SHAPES
    made = pools(tmp_path, "{kind: policy, policy: mine, without: experts, stand_in: best}")
    assert [expert.name for expert in made.seen_by("it", Measured(pairs=matrix)).experts] == [SHAPES]


def test_a_single_expert_answers_alone_and_the_best_one_by_what_was_measured(tmp_path: Path) -> None:
    plain = Matrix(
        ((CHART, "Plain Question"), ("Geometer", "Plain Question")),
        ("x",),
        {((CHART, "Plain Question"), "x"): Cell(1, 4), (("Geometer", "Plain Question"), "x"): Cell(3, 4)},
    )
    made = pools(tmp_path, f"{{kind: single_expert, expert: {CHART}}}", "  top: {kind: best_expert}")
    config: EvalConfig = made._config
    choices = Choices(plain=plain)
    names = {}
    for variant in variants(config):
        if variant.arm != "after":
            seen = made.seen_by(variant.arm, choices.measured)
            names[variant.arm] = build_policy(config, seen, variant, choices).name
    assert names == {"it": "fixed:Chart-Reader@@Plain Question", "top": "fixed:Geometer@@Plain Question"}
    assert (config.needs_plain, config.needs_matrix, config.needs_validation) == (True, False, True)


def test_spare_parts_serve_ablations_and_no_other_arm(tmp_path: Path) -> None:
    spare = tmp_path / "spare.yaml"
    spare.write_text(
        "experts:\n  Base Model:\n    description: the backbone\n"
        '    backend: {type: openai, model: base, replicas: [{url: "http://127.0.0.1:1/v1"}]}\n'
        "skills:\n  Plain Question:\n    description: alone\n    subskills:\n      Ask:\n        description: ask\n"
        '        procedure: {steps: [{ask: "Answer briefly. {{ question }}"}]}\n'
    )
    made = pools(tmp_path, "{kind: policy, policy: mine, without: both, stand_in: base model}", f"spare: [{spare}]")
    action = read(made.seen_by("it", Measured()), f"{CHART}@@Chart_Problem_Solver")
    assert action == Search("Base Model", "Plain Question", "how many?")
    refused = read(made.seen_by("after", Measured()), "Base Model@@Chart_Problem_Solver")
    assert isinstance(refused, Malformed) and refused.kind == "unknown_expert"
    asked = made.everything.skill("Plain Question").subskills[0].procedure.steps[0].ask
    assert asked == "Answer briefly. {{ question }}"


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ("{kind: policy, policy: mine, pool: {skills: [Chart]}}", "the skill 'Chart'"),
        ("{kind: single_expert, expert: Chart-Raeder}", "did you mean 'Chart-Reader'"),
        ("{kind: policy, policy: mine, without: experts, stand_in: Nobody}", "the expert 'Nobody'"),
        ("{kind: policy, policy: mine, without: experts}", "needs 'stand_in'"),
        ("{kind: policy, policy: mine, without: skills, stand_in: Geometer}", "'stand_in' belongs to"),
        ("{kind: policy, policy: mine, pool: {skills: []}}", "leaves nothing to call"),
        ("{kind: oracle, pool: {skills: [Chart_Problem_Solver]}}", "takes no 'pool'"),
        ("{kind: retrieval}", "needs 'method'"),
        ("{kind: random_pair, without: skills}", "takes no 'without'"),
        ("{kind: retrieval, method: bm25, embeddings: {server: a, model: b}}", "belongs to the method 'embedding'"),
    ],
)
def test_arms_that_cannot_work_are_refused_before_anything_runs(tmp_path: Path, arm: str, message: str) -> None:
    with pytest.raises(UserFault) as caught:
        pools(tmp_path, arm)
    assert message in str(caught.value)
