"""Deadlines of calls, delegations, episodes and batches; what is slow holds up nobody else."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from expert_doubles import Scripted, expert, skill
from server_doubles import Server, dead_url, says, served_registry, servers

from experts.outcome import Delegation, Outcome
from experts.pool import ExpertPool
from experts.request import Request
from registry.registry import Registry


@pytest.fixture
def server() -> Iterator[Server]:
    with servers() as (one,):
        yield one


def ask(registry: Registry, *, deadline_s: float | None = None, **options: Any) -> Delegation:
    async def main() -> Delegation:
        async with ExpertPool(registry, **options) as pool:
            await pool.prepare()
            return await pool.delegate("Reader", "Charts", "How many?", (), deadline_s=deadline_s)

    return asyncio.run(main())


def test_a_server_that_never_answers_is_let_go_at_the_deadline_and_the_socket_closed(server: Server):
    gone = threading.Event()

    def watch(handler: BaseHTTPRequestHandler) -> None:
        if handler.connection.recv(1) == b"":
            gone.set()

    server.script = [watch]
    done = ask(served_registry([server.url]), deadline_s=0.3)
    assert 0.28 <= done.latency_s < 10  # the clock rings a little early
    assert (done.outcome, done.attempts) == (Outcome.DEADLINE, 1)
    assert done.error == "not finished after 0.3 s, when the delegation's time was up"
    assert [one.outcome for one in done.tries] == [None]
    assert (done.note or "").startswith(f"try 1 of 1: {server.url} given up after 0.")
    assert gone.wait(5)


def test_a_request_that_the_server_never_came_to_read_is_in_the_trace_as_given_up():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # connections are made by the kernel; nobody takes them
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        done = ask(served_registry([url]), deadline_s=0.3)
    assert (done.outcome, done.attempts) == (Outcome.DEADLINE, 1)
    assert [(one.server, one.outcome) for one in done.tries] == [(url, None)]


def test_one_call_has_a_limit_of_its_own_within_the_delegation(server: Server):
    server.script = [server.hangs, says("at last")]
    done = ask(served_registry([server.url], limits={"timeout_s": 0.2}))
    assert (done.outcome, done.text, done.attempts) == (Outcome.OK, "at last", 2)
    assert [one.outcome for one in done.tries] == [Outcome.TIMEOUT, Outcome.OK]
    assert done.note is not None
    assert done.note.startswith(f"try 1 of 2: {server.url} timeout after 0.")
    assert done.note.endswith(f"{server.url} took longer than 0.2 s")


def test_the_slowest_delegation_does_not_hold_up_the_others():
    def act(request: Request) -> Any:
        return 1.5 if request.prompt == "slow" else 0.02

    async def main() -> tuple[list[float], float]:
        async with ExpertPool(Registry((expert("Reader"),), (skill(),)), backends={"Reader": Scripted(act)}) as pool:
            start = time.monotonic()

            async def episode(number: int) -> float:
                for turn in range(4):
                    question = "slow" if (number, turn) == (3, 0) else f"{number} {turn}"
                    await pool.delegate("Reader", "Charts", question, ())
                return time.monotonic() - start

            ends = await asyncio.gather(*(episode(number) for number in range(8)))
            return ends, time.monotonic() - start

    ends, wall = asyncio.run(main())
    slowest = ends.pop(3)
    assert max(ends) < 1.5 <= slowest <= wall < 6  # not four turns of 1.5 s


def test_a_batch_deadline_ends_what_is_late_and_keeps_what_is_done():
    def act(request: Request) -> Any:
        return 30.0 if request.prompt == "slow" else "42"

    async def main() -> list[Delegation]:
        registry = Registry((expert("Reader"),), (skill(),))
        async with ExpertPool(registry, backends={"Reader": Scripted(act)}) as pool:
            with pool.within(2.0):
                asked = [pool.delegate("Reader", "Charts", question, ()) for question in ("quick", "slow")]
                done = list(await asyncio.gather(*map(asyncio.create_task, asked)))
                done.append(await pool.delegate("Reader", "Charts", "after", ()))
            return [*done, await pool.delegate("Reader", "Charts", "outside", ())]

    done = asyncio.run(main())
    assert [one.outcome for one in done] == [Outcome.OK, Outcome.DEADLINE, Outcome.DEADLINE, Outcome.OK]
    assert "when the batch's time was up" in (done[1].error or "")
    assert done[2].error == "the batch's time was used up before"


def test_the_nearest_of_several_deadlines_counts():
    async def main() -> list[str]:
        registry = Registry((expert("Reader"),), (skill(),))
        async with ExpertPool(registry, backends={"Reader": Scripted(lambda _: 30.0)}) as pool:
            errors = []
            with pool.within(60.0, "batch"), pool.within(0.2, "episode"), pool.within(50.0, "turn"):
                errors.append((await pool.delegate("Reader", "Charts", "a", ())).error or "")
            with pool.within(60.0, "batch"):
                errors.append((await pool.delegate("Reader", "Charts", "a", (), deadline_s=0.2)).error or "")
            return errors

    errors = asyncio.run(main())
    assert errors[0].endswith("when the episode's time was up")
    assert errors[1] == "not finished after 0.2 s, when the delegation's time was up"


def test_waiting_for_a_turn_counts_towards_the_deadline():
    async def main() -> list[Delegation]:
        registry = Registry((expert("Reader", limits={"max_concurrency": 1}),), (skill(),))
        async with ExpertPool(registry, backends={"Reader": Scripted(lambda _: 30.0)}) as pool:
            return await asyncio.gather(
                *(pool.delegate("Reader", "Charts", f"{n}", (), deadline_s=0.3) for n in range(3))
            )

    assert [one.outcome for one in asyncio.run(main())] == [Outcome.DEADLINE] * 3


def test_a_call_waits_for_no_turn_while_every_server_rests(server: Server):
    server.script = [server.hangs]

    async def main() -> tuple[Delegation, float]:
        registry = served_registry([server.url], limits={"max_concurrency": 1, "timeout_s": 20})
        async with ExpertPool(registry) as pool:
            held = asyncio.create_task(pool.delegate("Reader", "Charts", "hangs", ()))
            while not server.requests:
                await asyncio.sleep(0.01)
            served = pool._callers["Reader"]._served
            assert served is not None
            for _ in range(3):
                with served._replicas.lease() as lease:
                    assert lease is not None
                    lease.alive = False
            start = time.monotonic()
            at_once = await pool.delegate("Reader", "Charts", "at once", ())
            held.cancel()
            return at_once, time.monotonic() - start

    at_once, seconds = asyncio.run(main())
    assert (at_once.outcome, at_once.attempts) == (Outcome.UNAVAILABLE, 0)
    assert at_once.text == "Reader is not available."
    assert seconds < 5


def test_nobody_at_any_address_is_unavailable_at_once_from_the_second_delegation_on():
    async def main() -> list[Delegation]:
        async with ExpertPool(served_registry([dead_url()])) as pool:
            return [await pool.delegate("Reader", "Charts", "a", ()) for _ in range(2)]

    first, second = asyncio.run(main())
    assert [first.outcome, second.outcome] == [Outcome.UNAVAILABLE] * 2
    assert (first.attempts, second.attempts) == (3, 0)
