"""Micro-batching of waiting requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from orchestrator.policies.batcher import MicroBatcher


class Doubler:
    """Doubles numbers; refuses 13; keeps the sizes of its batches."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.threads: set[str] = set()

    def __call__(self, batch: Sequence[int]) -> list[int]:
        self.sizes.append(len(batch))
        self.threads.add(threading.current_thread().name)
        if 13 in batch:
            raise ValueError("unlucky")
        return [2 * number for number in batch]


async def submit_all(batcher: MicroBatcher[int, int], numbers: Sequence[int]) -> list[int | BaseException]:
    return await asyncio.gather(*(batcher.submit(n) for n in numbers), return_exceptions=True)


def test_waiting_requests_go_together_and_in_order() -> None:
    work = Doubler()
    batcher: MicroBatcher[int, int] = MicroBatcher(work, max_batch=4)
    assert asyncio.run(submit_all(batcher, range(10))) == [2 * n for n in range(10)]
    assert work.sizes == [4, 4, 2]
    assert len(work.threads) == 1
    assert threading.main_thread().name not in work.threads


def test_one_bad_request_fails_alone() -> None:
    batcher: MicroBatcher[int, int] = MicroBatcher(Doubler(), max_batch=8)
    results = asyncio.run(submit_all(batcher, [1, 13, 3]))
    assert results[0] == 2 and results[2] == 6
    assert isinstance(results[1], ValueError)


def test_a_cancelled_request_is_not_run() -> None:
    work = Doubler()
    batcher: MicroBatcher[int, int] = MicroBatcher(work, max_batch=8)

    async def main() -> int:
        gone = asyncio.create_task(batcher.submit(13))
        kept = asyncio.create_task(batcher.submit(2))
        await asyncio.sleep(0)
        gone.cancel()
        return await kept

    assert asyncio.run(main()) == 4
    assert work.sizes == [1]


def test_one_event_loop_after_another_may_use_it() -> None:
    batcher: MicroBatcher[int, int] = MicroBatcher(Doubler(), max_batch=8)
    assert asyncio.run(batcher.submit(1)) == 2
    assert asyncio.run(batcher.submit(2)) == 4


def test_a_closed_batcher_says_so() -> None:
    batcher: MicroBatcher[int, int] = MicroBatcher(Doubler(), max_batch=8)
    batcher.close()
    with pytest.raises(RuntimeError, match="shutdown"):
        asyncio.run(batcher.submit(1))
