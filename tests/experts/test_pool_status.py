"""What a pool says about its experts, and what a delegation's record says about its tries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from expert_doubles import Scripted, expert, skill
from server_doubles import Server, dead_url, says, sends, served_registry, servers

from experts.outcome import Delegation, Outcome
from experts.pool import ExpertPool
from registry.registry import Registry


@pytest.fixture
def server() -> Iterator[Server]:
    with servers() as (one,):
        yield one


def test_status_counts_calls_outcomes_tokens_and_money(server: Server):
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    server.script = [says("1", usage=usage), sends(400, b"no"), says("2", usage=usage)]

    async def main() -> dict[str, Any]:
        registry = served_registry([server.url], price={"input_per_mtok": 2.0, "output_per_mtok": 10.0})
        async with ExpertPool(registry) as pool:
            await pool.prepare()
            for number in range(3):
                await pool.delegate("Reader", "Charts", str(number), ())
            return pool.status()

    status = asyncio.run(main())
    assert json.loads(json.dumps(status)) == status
    one = status["experts"]["Reader"]
    assert (one["backend"], one["calls"], one["queued"], one["in_flight"]) == ("openai", 3, 0, 0)
    assert one["outcomes"] == {"ok": 2, "refused": 1}
    assert one["tokens"] == {"prompt": 2000, "completion": 200}
    assert one["cost"] == pytest.approx(0.006)
    assert 0 < one["latency_s"]["p50"] <= one["latency_s"]["p95"] < 60
    assert one["replicas"] == [
        {
            "url": server.url,
            "weight": 1.0,
            "state": "closed",
            "rests_s": 0.0,
            "in_flight": 0,
            "requests": 3,
            "failures": {"refused": 1},
        }
    ]


def test_status_shows_what_rests_what_runs_and_what_waits(server: Server):
    server.script = [server.hangs]
    dead = dead_url()

    async def main() -> dict[str, Any]:
        registry = served_registry([dead, server.url], limits={"max_concurrency": 6})
        async with ExpertPool(registry) as pool:
            calls = [asyncio.create_task(pool.delegate("Reader", "Charts", f"{n}", ())) for n in range(8)]
            for _ in range(1000):
                status = pool.status()["experts"]["Reader"]
                if status["replicas"][0]["state"] == "open" and status["replicas"][1]["in_flight"] == 6:
                    break
                await asyncio.sleep(0.01)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert pool.status()["experts"]["Reader"]["in_flight"] == 0
            assert pool.status()["experts"]["Reader"]["outcomes"] == {"given_up": 6}
            return status

    status = asyncio.run(main())
    assert (status["in_flight"], status["queued"]) == (6, 2)
    resting, busy = status["replicas"]
    assert (resting["url"], resting["state"], resting["failures"]) == (
        dead,
        "open",
        {"unavailable": resting["requests"]},
    )
    assert 0 < resting["rests_s"] <= 5
    assert (busy["state"], busy["in_flight"], busy["failures"]) == ("closed", 6, {})


def test_an_embedded_program_has_no_replicas():
    async def main() -> dict[str, Any]:
        registry = Registry((expert("Reader"),), (skill(),))
        async with ExpertPool(registry, backends={"Reader": Scripted(lambda _: RuntimeError("oops"))}) as pool:
            await pool.delegate("Reader", "Charts", "bar?", ())
            return pool.status()["experts"]["Reader"]

    status = asyncio.run(main())
    assert (status["replicas"], status["outcomes"]) == ([], {"error": 1})
    assert status["latency_s"] == {"p50": None, "p95": None}


def test_a_record_tells_of_failed_tries_but_not_of_all_when_there_are_many(server: Server):
    server.script = [sends(500, b"x" * 5000), sends(500, b""), says("42")] * 5

    async def main() -> Delegation:
        async with ExpertPool(served_registry([server.url], asks=5)) as pool:
            return await pool.delegate("Reader", "Charts", "a", ())

    done = asyncio.run(main())
    assert (done.outcome, done.attempts, len(done.tries)) == (Outcome.OK, 15, 15)
    parts = (done.note or "").split("; ")
    numbers = [1, 2, 4, 5, 7, 8, 10, 11]
    assert [part.partition(":")[0] for part in parts[:-1]] == [f"try {number} of 15" for number in numbers]
    assert parts[-1] == "2 more tries without an answer"
    assert max(map(len, parts)) <= 240


def test_a_cached_answer_says_nothing_of_the_tries_that_it_once_took(server: Server):
    server.script = [sends(503, b"busy"), says("42")]

    async def main() -> list[Delegation]:
        async with ExpertPool(served_registry([server.url], deterministic=True)) as pool:
            return [await pool.delegate("Reader", "Charts", "a", ()) for _ in range(2)]

    first, second = asyncio.run(main())
    assert (first.cached, first.attempts, len(first.tries), first.note is None) == (False, 2, 2, False)
    assert (second.cached, second.attempts, second.tries, second.note) == (True, 0, (), None)
