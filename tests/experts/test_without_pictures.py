"""The paper's 24 procedures on questions that come without a picture, with the registry's own tools."""

from __future__ import annotations

import asyncio

import pytest
from expert_doubles import Scripted, delegate, expert, skill, tool
from test_paper_procedures import EXPERT, FILES, RUNS

from experts.outcome import Delegation, Outcome
from experts.pool import ExpertPool
from experts.request import Request
from experts.sandbox import isolation
from registry.registry import Registry

CODE = "def solution(n):\n    return n + 1"
NEEDS_ONE = ("ocr", "detect")  # caption and zoom may fail


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load(*FILES)


def ask(registry: Registry, subskill: str, words: str) -> Delegation:
    level_1, question, _ = RUNS[subskill]

    def act(request: Request) -> str:
        assert request.pictures == ()
        return words

    async def main() -> Delegation:
        async with ExpertPool(registry, backends={EXPERT: Scripted(act)}) as pool:
            return await pool.delegate(EXPERT, level_1, question, ())

    done = asyncio.run(main())
    assert done.subskill == subskill
    return done


@pytest.mark.parametrize("subskill", [name for name in RUNS if name != "Code Problem Solver"])
def test_a_procedure_runs_without_a_picture_or_says_which_tool_needs_one(registry: Registry, subskill: str):
    done = ask(registry, subskill, "42")
    missing = next((step for step in RUNS[subskill][2].split() if step in NEEDS_ONE), None)
    if missing is None:
        assert (done.outcome, done.text) == (Outcome.OK, "42")
    else:
        assert (done.outcome, done.outcome.infrastructure) == (Outcome.REFUSED, False)
        assert done.text == f"There is no picture, and the tool {missing} of this skill needs one."
        assert f"tool '{missing}': it needs a picture; there is none" in (done.error or "")


@pytest.mark.skipif(not isolation.available().works, reason="nothing here keeps a program in")
def test_a_program_is_written_and_run_for_a_task_in_words(registry: Registry):
    done = ask(registry, "Code Problem Solver", f"```python\n{CODE}\n```")
    assert (done.outcome, done.note) == (Outcome.OK, None)
    assert done.text.startswith(f"```python\n{CODE}\n```")
    assert "It was run without an error" in done.text


def test_a_tool_of_ones_own_is_not_run_without_a_picture(programs: str):
    steps = [{"tool": "reader", "save": "read"}, {"ask": "{{ read }}"}]
    registry = Registry((expert("Reader", f"{programs}:Echo"),), (skill(bar=steps),), (tool(f"{programs}:Reader"),))
    done = delegate(registry, pictures=())
    assert (done.outcome, done.attempts) == (Outcome.REFUSED, 0)
    assert done.text == "There is no picture, and the tool reader of this skill needs one."
