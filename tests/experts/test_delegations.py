"""Delegations through the pool: routing, outcomes, deadlines, counting; nothing ever raises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from expert_doubles import (
    CLASSIFIED,
    OTHER,
    PICTURE,
    Scripted,
    delegate,
    expert,
    scripted,
    skill,
)

from experts.outcome import Delegation, ExpertFailure, ExpertReply, Outcome, Usage
from experts.pool import ExpertPool
from experts.request import Request
from registry.registry import Registry


def test_a_delegation_tells_answer_procedure_and_usage():
    price = {"input_per_mtok": 2.0, "output_per_mtok": 10.0}
    done = scripted(
        lambda _: " 42 ",
        expert={"price": price},
        skill=skill(bar=[{"ask": "a"}, {"ask": "b"}], line=[{"ask": "c"}]),
    )
    assert (done.outcome, done.text, done.expert, done.skill) == (Outcome.OK, "42", "Reader", "Charts")
    assert (done.subskill, done.reason) == ("bar", "keyword:bar")
    assert done.usage == Usage(200, 20, pytest.approx(0.0006), 2)
    assert (done.attempts, done.cached, done.error, done.note) == (2, False, None, None)
    assert 0 <= done.latency_s < 5


def test_names_are_matched_after_normalising_and_reported_as_registered():
    registry = Registry((expert("Chart-Reader"),), (skill("Chart_Problem_Solver"),))
    backends = {"Chart-Reader": Scripted(lambda _: "ok")}
    done = delegate(registry, name="chart reader", under="CHART-problem solver", backends=backends)
    assert (done.expert, done.skill, done.text) == ("Chart-Reader", "Chart_Problem_Solver", "ok")


def test_unknown_names_are_refused_with_the_nearest_ones():
    registry = Registry((expert("Chart-Reader"), expert("Geometer")), (skill("Charts"),))
    done = delegate(registry, name="Chart-Raeder")
    assert (done.outcome, done.expert) == (Outcome.INVALID_ACTION, "Chart-Raeder")
    assert done.text == "There is no expert 'Chart-Raeder'. Nearest: Chart-Reader."
    assert not done.outcome.infrastructure
    other = delegate(registry, name="Geometer", under="Chart")
    assert other.text == "There is no skill 'Chart'. Nearest: Charts."


@pytest.mark.parametrize("question", ["", "  \n", "what is data:image/png;base64,iVBORw0KGgo"])
def test_a_question_that_is_none_is_an_invalid_action(question: str):
    asked = []
    done = scripted(lambda request: asked.append(request) or "x", question)
    assert (done.outcome, asked) == (Outcome.INVALID_ACTION, [])


def test_only_as_many_pictures_as_the_expert_takes_are_sent_and_that_is_said():
    backend = Scripted(lambda _: "ok")
    registry = Registry((expert("Reader", limits={"max_images": 1}),), (skill(),))
    done = delegate(registry, pictures=(PICTURE, OTHER, OTHER), backends={"Reader": backend})
    assert done.outcome is Outcome.OK
    assert done.note == "3 pictures for Reader, which takes 1: the first 1 sent"
    assert backend.requests[0].pictures == (PICTURE,)


def test_empty_replies_and_reasoning_without_an_answer():
    silent = scripted(lambda _: ExpertReply("", reasoning="I count 1, 2, 3", finish_reason="length"))
    assert (silent.outcome, silent.text) == (Outcome.EMPTY_REPLY, "Reader gave an empty reply.")
    assert not silent.outcome.infrastructure
    tail = scripted(lambda _: ExpertReply("", reasoning="I count 1, 2, 3"), reasoning_tail_chars=7)
    assert (tail.outcome, tail.text) == (Outcome.OK, "1, 2, 3")
    assert tail.note == "the end of the expert's reasoning stands in for an empty answer"


def test_failures_come_back_as_outcomes_with_attempts_and_without_inner_addresses():
    done = scripted(lambda _: ExpertFailure(Outcome.UNAVAILABLE, "http://10.0.0.1 refused", attempts=3))
    assert (done.outcome, done.text, done.attempts) == (Outcome.UNAVAILABLE, "Reader is not available.", 3)
    assert done.error == "skill 'Charts', subskill 'bar', step 1: http://10.0.0.1 refused"
    assert done.outcome.infrastructure


def test_a_bug_in_a_backend_is_an_error_outcome(caplog):
    done = scripted(lambda _: ZeroDivisionError("oops"))
    assert (done.outcome, done.error) == (Outcome.ERROR, "ZeroDivisionError: oops")


def test_a_slow_expert_meets_the_deadline_and_keeps_what_it_used():
    replies: list[Any] = ["first", 30.0]
    done = scripted(lambda _: replies.pop(0), skill=skill(bar=[{"ask": "a"}, {"ask": "b"}]), deadline_s=0.1)
    assert (done.outcome, done.text) == (Outcome.DEADLINE, "Reader did not finish in time.")
    assert done.subskill == "bar"
    assert done.usage.calls == 1
    assert done.latency_s < 10


def test_one_bad_delegation_leaves_the_others_alone():
    def act(request: Request) -> Any:
        return {"2": RuntimeError("bang"), "5": 30.0}.get(request.prompt, f"re {request.prompt}")

    async def main() -> list[Delegation]:
        registry = Registry((expert("Reader"),), (skill(),))
        async with ExpertPool(registry, backends={"Reader": Scripted(act)}) as pool:
            return await asyncio.gather(
                *(
                    pool.delegate("Reader", "Charts", str(n), (PICTURE,), deadline_s=0.1 if n == 5 else 60)
                    for n in range(8)
                )
            )

    outcomes = [done.outcome for done in asyncio.run(main())]
    assert outcomes.pop(5) is Outcome.DEADLINE
    assert outcomes.pop(2) is Outcome.ERROR
    assert outcomes == [Outcome.OK] * 6


def test_no_more_calls_go_to_an_expert_at_once_than_it_takes():
    running = most = 0

    class Busy(Scripted):
        async def ask(self, request: Request) -> ExpertReply:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return ExpertReply("ok")

    async def main() -> None:
        registry = Registry((expert("Reader", limits={"max_concurrency": 2}),), (skill(),))
        async with ExpertPool(registry, backends={"Reader": Busy(lambda _: "")}) as pool:
            await asyncio.gather(*(pool.delegate("Reader", "Charts", f"q{n}", ()) for n in range(6)))

    asyncio.run(main())
    assert most == 2


@pytest.mark.parametrize(
    ("label", "subskill", "reason"),
    [
        ("line", "line", "classifier"),
        ("It is a pie", "bar", "default:unmapped reply"),
        (ExpertFailure(Outcome.TIMEOUT, "slow"), "bar", "default:no reply"),
        (30.0, "bar", "default:no reply"),
    ],
)
def test_without_a_keyword_the_expert_is_asked_which_procedure_fits(label, subskill, reason):
    done = scripted(
        lambda request: request.prompt if request.prompt.startswith("as ") else label,
        "What is shown?",
        skill=skill(**CLASSIFIED),
        deadline_s=0.4 if label == 30.0 else 60,
    )
    assert (done.outcome, done.text) == (Outcome.OK, f"as {subskill}")
    assert (done.subskill, done.reason) == (subskill, reason)
