"""Delegations to programs in this process, and their tools: what they do wrong becomes an outcome."""

from __future__ import annotations

import asyncio

import pytest
from expert_doubles import (
    PICTURE,
    calls_of,
    delegate,
    expert,
    skill,
    tool,
)

from experts.outcome import Delegation, Outcome, Usage
from experts.pool import ExpertPool
from registry.errors import UserFault
from registry.registry import Registry


def test_an_embedded_program_answers_with_its_options(programs: str):
    registry = Registry((expert("Reader", f"{programs}:Echo", options={"prefix": "re: "}),), (skill(),))
    done = delegate(registry, "the bar?")
    assert (done.outcome, done.text, done.usage) == (Outcome.OK, "re: the bar?", Usage(calls=1))


@pytest.mark.parametrize(
    ("question", "outcome", "words"),
    [
        ("none", Outcome.EMPTY_REPLY, "no text"),
        ("empty", Outcome.EMPTY_REPLY, "no text"),
        ("number", Outcome.ERROR, "answer() gave int, not text"),
        ("raise", Outcome.ERROR, "ValueError: no such bar"),
        ("huge", Outcome.TOO_LONG, "larger than 262144 bytes"),
        ("sleep", Outcome.TIMEOUT, "longer than 1 s"),
    ],
)
def test_what_a_program_does_wrong_becomes_an_outcome(programs: str, question, outcome, words):
    odd = expert("Reader", f"{programs}:Odd", limits={"timeout_s": 1 if question == "sleep" else 60})
    done = delegate(Registry((odd,), (skill(),)), question)
    assert done.outcome is outcome
    assert words in (done.error or "")


def test_text_that_cannot_be_encoded_is_mended(programs: str):
    done = delegate(Registry((expert("Reader", f"{programs}:Odd"),), (skill(),)), "surrogate")
    assert done.text == "a?b"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module_here:X", "cannot import 'no_such_module_here': ModuleNotFoundError"),
        ("{}:Ecko", "has no 'Ecko'"),
        ("{}:calls", "is not a class"),
        ("{}:Broken", "RuntimeError: weights missing"),
        ("{}:Reader", "has no method answer()"),
        ("no-such-entry-point", "no installed package has an entry point 'no-such-entry-point'"),
    ],
)
def test_a_program_that_cannot_be_made_says_why_when_used_and_when_prepared(programs: str, target, words):
    registry = Registry((expert("Reader", target.format(programs)),), (skill(),))
    done = delegate(registry)
    assert done.outcome is Outcome.ERROR
    assert words in (done.error or "")
    with pytest.raises(UserFault, match="target"):
        asyncio.run(ExpertPool(registry).prepare())


def test_tools_feed_the_expert_and_are_computed_once_for_all_experts(programs: str):
    steps = [
        {"tool": "reader", "save": "found", "args": {"q": "{{ skill }}"}},
        {"ask": "{{ found.json }}", "images": ["found"]},
    ]
    registry = Registry(
        tuple(expert(name, f"{programs}:Echo") for name in ("A", "B")),
        (skill(bar=steps),),
        (tool(f"{programs}:Reader"),),
    )

    async def main() -> list[Delegation]:
        async with ExpertPool(registry) as pool:
            return await asyncio.gather(
                *(pool.delegate(n, "Charts", "bar?", (PICTURE,)) for n in ("A", "B", "A"))
            )

    assert [done.text for done in asyncio.run(main())] == ['{"width":60}'] * 3
    assert calls_of(programs).count(("run", 60, {"q": "Charts"})) == 1


@pytest.mark.parametrize(
    ("give", "words"),
    [
        ("dict", "run() gave dict"),
        ("set", "is not JSON"),
        ("other", "KeyError: 'other'"),
        ("huge", "larger than 262144 bytes"),
    ],
)
def test_a_failing_tool_is_named(programs: str, give: str, words: str):
    registry = Registry(
        (expert("Reader", f"{programs}:Echo"),),
        (skill(bar=[{"tool": "reader", "args": {"give": give}}, {"ask": "q"}]),),
        (tool(f"{programs}:Careless"),),
    )
    done = delegate(registry)
    assert done.outcome is (Outcome.TOO_LONG if give == "huge" else Outcome.ERROR)
    assert "step 1: tool 'reader': " in (done.error or "") and words in (done.error or "")
