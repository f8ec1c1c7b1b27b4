"""Threads for programs: deadlines, programs that never return, several event loops."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

from experts.workers import NoWorker, Workers, calls_given_up


def test_result_and_fault_of_a_call_reach_its_caller():
    async def main() -> None:
        workers = Workers(2)
        assert await workers.run(lambda: 6 * 7, 5) == 42
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 / 0, 5)
        with pytest.raises(RuntimeError, match="SystemExit"):
            await workers.run(lambda: sys.exit(3), 5)
        workers.close()

    asyncio.run(main())


def test_no_more_calls_run_at_once_than_there_are_workers():
    running, most, lock = 0, 0, threading.Lock()

    def call() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    async def main() -> None:
        workers = Workers(3)
        await asyncio.gather(*(workers.run(call, 5) for _ in range(12)))
        workers.close()

    asyncio.run(main())
    assert most == 3


def test_a_call_that_never_returns_is_given_up_and_the_next_one_runs():
    release = threading.Event()

    async def main() -> None:
        workers = Workers(1)
        with pytest.raises(TimeoutError):
            await workers.run(release.wait, 0.05)
        assert await workers.run(lambda: "still here", 5) == "still here"
        release.set()
        workers.close()

    asyncio.run(main())


def test_too_many_lost_calls_are_refused_at_once_until_some_come_back():
    release = threading.Event()

    async def main() -> None:
        workers = Workers(1, max_lost=1)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await workers.run(release.wait, 0.02)
        with pytest.raises(NoWorker, match="2 earlier calls"):
            await workers.run(lambda: 1, 5)
        release.set()
        for _ in range(200):
            try:
                assert await workers.run(lambda: "back", 5) == "back"
                break
            except NoWorker:
                await asyncio.sleep(0.01)
        else:
            raise AssertionError("the lost calls came back, the workers did not")
        workers.close()

    asyncio.run(main())


def test_a_cancelled_call_that_is_still_queued_never_starts():
    release, started = threading.Event(), []

    async def main() -> None:
        workers = Workers(1)
        first = asyncio.create_task(workers.run(release.wait, 5))
        await asyncio.sleep(0.02)
        second = asyncio.create_task(workers.run(lambda: started.append("second"), 5))
        await asyncio.sleep(0.02)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        release.set()
        await first
        assert await workers.run(lambda: "third", 5) == "third"
        workers.close()

    asyncio.run(main())
    assert started == []


def test_two_event_loops_share_the_workers():
    workers, results = Workers(2), []

    def loop() -> None:
        async def many() -> list[int]:
            return await asyncio.gather(*(workers.run(lambda n=n: n * n, 5) for n in range(20)))

        results.append(asyncio.run(many()))

    threads = [threading.Thread(target=loop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[n * n for n in range(20)]] * 2
    workers.close()
    with pytest.raises(NoWorker, match="closed"):
        asyncio.run(workers.run(lambda: 1, 1))


def test_a_call_that_was_given_up_is_known_until_it_comes_back():
    release = threading.Event()

    async def main() -> None:
        workers = Workers(1)
        with pytest.raises(TimeoutError):
            await workers.run(release.wait, 0.05)
        workers.close()

    before = calls_given_up()
    asyncio.run(main())
    assert calls_given_up() == before + 1
    release.set()
    until = time.monotonic() + 5
    while calls_given_up() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert calls_given_up() == before
