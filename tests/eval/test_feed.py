"""Work drawn in a thread, a few items ahead of those who take it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

from eval.feed import Feed


def counting(n: int, drawn: list[int], closed: list[bool] | None = None) -> Generator[int, None, None]:
    try:
        for number in range(n):
            drawn.append(number)
            yield number
    finally:
        if closed is not None:
            closed.append(True)


async def drain(feed: Feed[int]) -> list[int]:
    found = []
    while (item := await feed.get()) is not None:
        found.append(item)
    await feed.aclose()
    return found


def test_items_come_in_order_and_the_end_is_told_again_and_again() -> None:
    async def run() -> tuple[list[int], int | None]:
        feed = Feed(counting(21, []), batch=4)
        return await drain(feed), await feed.get()

    assert asyncio.run(run()) == (list(range(21)), None)


def test_several_workers_share_the_items_without_losing_or_repeating_one() -> None:
    async def run() -> list[int]:
        feed = Feed(counting(100, []), batch=3)
        found: list[int] = []

        async def worker() -> None:
            while (item := await feed.get()) is not None:
                await asyncio.sleep(0)
                found.append(item)

        await asyncio.gather(*(worker() for _ in range(7)))
        await feed.aclose()
        return found

    assert sorted(asyncio.run(run())) == list(range(100))


def test_no_more_than_two_batches_are_drawn_ahead() -> None:
    async def run() -> int:
        drawn: list[int] = []
        feed = Feed(counting(1000, drawn), batch=8)
        for _ in range(10):
            await feed.get()
        await feed.aclose()  # what is being drawn has been drawn then
        return len(drawn)

    assert asyncio.run(run()) <= 10 + 16


def test_the_event_loop_is_not_the_thread_that_draws() -> None:
    threads: list[int] = []

    def noting() -> Generator[int, None, None]:
        threads.append(threading.get_ident())
        yield 1

    assert asyncio.run(drain(Feed(noting()))) == [1]
    assert threads != [threading.get_ident()]


def test_asking_whether_something_is_left_takes_nothing() -> None:
    async def run() -> tuple[bool, list[int], bool]:
        feed, empty = Feed(counting(3, [])), Feed(counting(0, []))
        some, none = await feed.any(), await empty.any()
        await empty.aclose()
        return some, await drain(feed), none

    assert asyncio.run(run()) == (True, [0, 1, 2], False)


def test_a_fault_of_the_iterator_reaches_everyone_behind_the_items_given_before_it() -> None:
    def breaking() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise OSError("no such file")

    async def run() -> list[int | None]:
        feed = Feed(breaking(), batch=8)
        found = [await feed.get(), await feed.get()]
        for _ in range(2):
            with pytest.raises(OSError, match="no such file"):
                await feed.get()
        await feed.aclose()
        return found

    assert asyncio.run(run()) == [1, 2]


def test_closing_early_closes_the_iterator() -> None:
    closed: list[bool] = []

    async def run() -> None:
        feed = Feed(counting(50, [], closed))
        await feed.get()
        await feed.aclose()

    asyncio.run(run())
    assert closed == [True]
