"""Servers that run: when they count as ready, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from serving_doubles import FAST, PATIENCE_S, launched, main_pid

from experts.images import load_picture
from experts.outcome import Outcome
from experts.pool import ExpertPool
from experts.serving.server import State
from registry.errors import UserFault


def test_a_server_counts_as_ready_when_it_has_answered_a_question_with_a_picture(bench) -> None:
    one = bench(A=[])

    async def main() -> None:
        async with launched(one) as launch:
            await launch.until(one.endpoints.exists, "the file")
            assert one.published() == {}
            await launch.ready()
            assert one.published() == {"A": [one.url("A")]}
        assert one.published() == {}

    asyncio.run(main())
    asked = [entry for entry in one.records() if "asked" in entry]
    assert [entry["images"] for entry in asked] == [1]
    started = next(entry for entry in one.records() if "started" in entry)
    assert started["started"][:2] == ["serve", "lab/A"]
    assert started["env"]["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert json.loads(one.endpoints.read_text())["version"] == 1


def test_a_server_killed_hard_comes_back_at_its_address(bench) -> None:
    one = bench(A=["--do-child"])

    async def main() -> None:
        async with launched(one, replace(FAST, health_s=5)) as launch:  # death is seen, not guessed
            await launch.ready()
            first = main_pid(one)
            os.kill(first, signal.SIGKILL)
            await launch.until(lambda: one.published() == {}, "the file without it")
            await launch.until(lambda: one.published() == {"A": [one.url("A")]}, "the server")
            assert launch.server("A").starts == 2 and main_pid(one) != first
            assert any("lab/A: ended by SIGKILL; starts again in 0.1 s" in line for line in launch.said)

    asyncio.run(main())


def test_a_server_that_hangs_is_started_again(bench, tmp_path: Path) -> None:
    hang = tmp_path / "hang"
    one = bench(A=["--do-hang-while", str(hang)])

    async def main() -> None:
        async with launched(one) as launch:
            await launch.ready()
            hang.touch()
            await launch.until(lambda: one.published() == {}, "the hang to be seen")
            hang.unlink()
            await launch.until(lambda: launch.server("A").state is State.READY, "the server")
            assert any("no sign of health 2 times in a row" in line for line in launch.said)

    asyncio.run(main())


def test_a_server_of_another_model_is_told_and_given_up(bench) -> None:
    one = bench(A=["--do-name", "lab/other\x1b[31m"])

    async def main() -> None:
        with pytest.raises(UserFault, match=r"serves lab/other \[31m, not 'lab/A'"):
            async with launched(one) as launch:
                await launch.task
        assert launch.server("A").starts == 3
        assert one.published() == {}

    asyncio.run(main())


def test_one_server_that_cannot_serve_leaves_the_others_alone(bench) -> None:
    two = bench(A=["--do-refuse-pictures"], B=[], C=["--do-die"])

    async def main() -> None:
        async with launched(two) as launch:
            await launch.ready()
            a, b, c = (launch.server(name) for name in "ABC")
            assert [a.state, b.state, c.state] == [State.FAILED, State.READY, State.FAILED]
            # What restarting cannot mend is not tried again; the server's words come without their controls.
            assert a.starts == 1
            assert a.reason == "a question with a picture is answered 400: this model takes no pictures [31m"
            assert c.starts == 3
            assert c.reason.startswith(
                "given up after 3 failures in a row; last: ended with exit code 3; its log says: "
            )
            assert c.reason.endswith("ValueError: the weights are broken")
            assert two.published() == {"B": [two.url("B")]}

    asyncio.run(main())


def test_servers_of_one_device_are_loaded_one_after_the_other(bench) -> None:
    two = bench(A=["--do-start-s", "0.5"], B=["--do-start-s", "0.5"])

    async def main() -> None:
        async with launched(two) as launch:
            await launch.ready()

    asyncio.run(main())
    kinds = [key for entry in two.records() for key in ("started", "asked", "answered") if key in entry]
    assert kinds == ["started", "asked", "answered"] * 2


def test_every_call_ends_in_an_outcome_when_its_server_is_killed_under_load(bench) -> None:
    one = bench(A=["--do-answer-s", "0.2"])
    picture = load_picture(Image.new("RGB", (40, 40), (1, 2, 3)))

    async def main() -> None:
        async with launched(one) as launch:
            await launch.ready()
            async with ExpertPool(one.registry, endpoints=one.endpoints) as pool:

                async def ask(number: int) -> tuple[int, Outcome, str]:
                    done = await pool.delegate("A", "Ask", f"question {number}", [picture], deadline_s=30)
                    return number, done.outcome, done.text

                calls = [asyncio.create_task(ask(number)) for number in range(80)]
                await launch.until(lambda: sum("answered" in e for e in one.records()) > 10, "some answers")
                os.kill(main_pid(one), signal.SIGKILL)
                results = await asyncio.gather(*calls)
                assert sorted(number for number, _, _ in results) == list(range(80))
                for number, outcome, text in results:
                    if outcome is Outcome.OK:
                        assert text == f"you asked: question {number}"
                    else:
                        assert outcome in (Outcome.UNAVAILABLE, Outcome.ERROR, Outcome.TIMEOUT)
                assert {outcome for _, outcome, _ in results} >= {Outcome.OK}
                await launch.until(lambda: launch.server("A").starts == 2 and one.published(), "the server")
                deadline = time.monotonic() + PATIENCE_S
                while (again := await ask(99))[1] is not Outcome.OK and time.monotonic() < deadline:
                    await asyncio.sleep(0.5)  # the pool lets the server rest before it looks again
                assert again == (99, Outcome.OK, "you asked: question 99")
        answered = [entry["answered"] for entry in one.records() if "answered" in entry]
        assert answered.count("question 99") == 1

    asyncio.run(main())
