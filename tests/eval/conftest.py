"""Doubles for the evaluation's tests: trajectories in JSON form, facts of them, and two experts that are programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.facts import Facts, facts_of

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parent.parent / "experts"))  # server_doubles

MakeTrajectory = Callable[..., dict[str, Any]]
MakeFacts = Callable[..., Facts]

TWO_EXPERTS = """
experts:
  Shape-Spotter:
    description: counts and colours of shapes
    backend: {type: python, target: "two_expert_doubles:Two"}
  Line-Tracer:
    description: lines and touching circles
    backend: {type: python, target: "two_expert_doubles:Yes"}
skills:
  Looking:
    description: looking
    subskills:
      look: {description: looks, keywords: [], procedure: {steps: [{ask: "{{ question }}"}]}}
"""

PROGRAMS = """
class Two:
    def answer(self, prompt, pictures):
        return "2"


class Yes:
    def answer(self, prompt, pictures):
        return "Yes"
"""


def make_trajectory(
    row_id: str = "row-0",
    *,
    sample: int = 0,
    group: str = "bar_value",
    question: str = "How tall is Kalomi?",
    query: str | None = None,
    pair: tuple[str, str] = ("Chart-Reader", "Chart_Problem_Solver"),
    answer: str | None = "42",
    gold: str = "42",
    valid: bool = True,
    malformed: int = 0,
    observation: str = "42",
    latency_s: float = 1.0,
    policy: str = "double",
) -> dict[str, Any]:
    """One call, then an answer; ``malformed`` malformed turns before it."""
    query = question if query is None else query
    expert, skill = pair
    broken = {
        "text": "<search> nonsense </search>",
        "action": {"type": "malformed", "kind": "no_separator", "detail": "no @@"},
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "observation": None,
    }
    call = {
        "text": f"<search> {expert}@@{skill}: {query} </search>",
        "action": {"type": "search", "expert": expert, "skill": skill, "query": query},
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "observation": {
            "text": observation,
            "outcome": "ok" if valid else "unavailable",
            "expert": expert,
            "skill": skill,
            "subskill": "bars",
            "reason": "keyword:tall",
            "latency_s": 0.01,
            "cached": False,
            "error": None if valid else "connection refused",
            "usage": {"prompt_tokens": 100, "completion_tokens": 2, "cost": 0.0, "calls": 1},
        },
    }
    final = {
        "text": f"<answer> {answer} </answer>",
        "action": {"type": "answer", "text": answer},
        "prompt_tokens": 20,
        "completion_tokens": 4,
        "observation": None,
    }
    turns = [broken] * malformed + [call] + ([final] if answer is not None else [])
    return {
        "version": 1,
        "id": f"{row_id}/{sample}",
        "row_id": row_id,
        "benchmark": "embedded",
        "group": group,
        "question": question,
        "answer": answer,
        "choices": None,
        "ground_truth": gold,
        "pictures": [{"sha256": "ab" * 32, "width": 64, "height": 64}],
        "policy": policy,
        "seed": 0,
        "sample": sample,
        "turns": turns,
        "stop": "answered" if valid else "infrastructure",
        "valid": valid,
        "error": None if valid else "connection refused",
        "counts": {"calls": 1, "malformed": malformed, "forged_observation": 0, "cached_calls": 0},
        "timings": {"total_s": latency_s, "policy_s": 0.5, "expert_s": 0.01},
        "versions": {},
    }


def make_facts(
    row_id: str = "row-0",
    value: float | None = 1.0,
    *,
    arm: str = "after",
    split: str = "test",
    cluster: str | None = None,
    groups: dict[str, str] | None = None,
    **details: Any,
) -> Facts:
    """Facts of ``make_trajectory``; a value of ``None`` makes it invalid."""
    trajectory = make_trajectory(row_id, valid=value is not None, **details)
    return facts_of(arm, split, value, trajectory, cluster=cluster, groups=groups)


@pytest.fixture(name="make_trajectory", scope="session")
def _make_trajectory() -> MakeTrajectory:
    return make_trajectory


@pytest.fixture(name="make_facts", scope="session")
def _make_facts() -> MakeFacts:
    return make_facts


@pytest.fixture(scope="session")
def write_two_experts() -> Callable[[Path], Path]:
    """Writes two experts into a folder, one that always says "2" and one that always says "Yes", and returns their
    registry. The folder must be importable."""

    def _write(folder: Path) -> Path:
        (folder / "two_expert_doubles.py").write_text(PROGRAMS)
        (folder / "registry.yaml").write_text(TWO_EXPERTS)
        return folder / "registry.yaml"

    return _write
