"""The call cache: kept by content, joined while going on, harmless when its folder is not usable."""

from __future__ import annotations

import asyncio
import logging
import pickle
import sqlite3
import threading
from pathlib import Path

import diskcache
import pytest

from experts.cache import CallCache, content_key


def always(_: str) -> bool:
    return True


def test_keys_depend_on_all_content_and_not_on_the_order_of_arguments():
    key = content_key("tool", ["ocr", "1"], "abc", {"a": "1", "b": "2"})
    assert key == content_key("tool", ["ocr", "1"], "abc", {"b": "2", "a": "1"})
    others = [
        content_key("tool", ["ocr", "2"], "abc", {"a": "1", "b": "2"}),
        content_key("tool", ["ocr", "1"], "abd", {"a": "1", "b": "2"}),
        content_key("ask", ["ocr", "1"], "abc", {"a": "1", "b": "2"}),
    ]
    assert key not in others


def test_what_one_cache_kept_another_one_finds_in_the_folder(tmp_path: Path):
    first = CallCache(tmp_path / "calls")
    first.put("k", "42")
    first.close()
    second = CallCache(tmp_path / "calls")
    assert second.get("k") == "42"
    assert second.get("other") is None
    second.close()


def test_identical_calls_going_on_share_one_computation():
    calls = 0

    async def compute() -> str:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.02)
        return "once"

    async def main() -> list[tuple[str, bool]]:
        cache = CallCache()
        return await asyncio.gather(*(cache.once("k", compute, always) for _ in range(5)))

    results = asyncio.run(main())
    assert calls == 1
    assert results[0] == ("once", False)
    assert results[1:] == [("once", True)] * 4


def test_a_result_not_worth_keeping_is_shared_now_and_computed_again_later():
    calls = 0

    async def compute() -> str:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.01)
        return f"failure {calls}"

    async def main() -> None:
        cache = CallCache()
        pair = await asyncio.gather(*(cache.once("k", compute, lambda _: False) for _ in range(2)))
        assert [text for text, _ in pair] == ["failure 1", "failure 1"]
        assert await cache.once("k", compute, always) == ("failure 2", False)

    asyncio.run(main())


def test_when_the_computing_caller_is_cancelled_one_that_waits_takes_over():
    calls = 0

    async def compute() -> str:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.03)
        return f"by caller {calls}"

    async def main() -> None:
        cache = CallCache()
        first = asyncio.create_task(cache.once("k", compute, always))
        await asyncio.sleep(0.005)
        second = asyncio.create_task(cache.once("k", compute, always))
        third = asyncio.create_task(cache.once("k", compute, always))
        await asyncio.sleep(0.005)
        third.cancel()  # one that waits may leave without harm
        first.cancel()
        assert await second == ("by caller 2", False)

    asyncio.run(main())


def test_calls_from_two_event_loops_join():
    cache, calls, results = CallCache(), [], []
    started = threading.Event()

    async def slow() -> str:
        calls.append("slow")
        started.set()
        await asyncio.sleep(0.1)
        return "shared"

    def join() -> None:
        started.wait(5)
        results.append(asyncio.run(cache.once("k", slow, always)))

    thread = threading.Thread(target=join)
    thread.start()
    results.append(asyncio.run(cache.once("k", slow, always)))
    thread.join()
    assert calls == ["slow"]
    assert sorted(results) == [("shared", False), ("shared", True)]


def test_memory_is_bounded_and_drops_what_was_used_longest_ago():
    cache = CallCache(memory_bytes=25)
    cache.put("a", "x" * 10)
    cache.put("b", "x" * 10)
    assert cache.get("a") is not None
    cache.put("c", "x" * 10)
    assert cache.get("b") is None
    assert cache.get("a") == cache.get("c") == "x" * 10


def test_a_folder_that_cannot_be_made_gives_one_warning_and_no_fault(tmp_path: Path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with caplog.at_level(logging.WARNING):
        cache = CallCache(blocked / "calls")
        cache.put("a", "1")
        cache.put("b", "2")
        assert cache.get("a") == "1"
    assert len(caplog.records) == 1
    assert "going on without the call cache" in caplog.text


def test_a_broken_database_gives_one_warning_and_no_fault(tmp_path: Path, caplog):
    (tmp_path / "cache.db").write_bytes(b"this is no database" * 100)
    with caplog.at_level(logging.WARNING):
        cache = CallCache(tmp_path)
        assert cache.get("a") is None
        cache.put("a", "1")
        assert cache.get("a") == "1"
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "fault", [OSError(28, "No space left on device"), sqlite3.OperationalError("database or disk is full")]
)
def test_a_full_disk_gives_one_warning_and_no_fault(tmp_path: Path, caplog, monkeypatch, fault):
    def full(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(diskcache.Cache, "set", full)
    with caplog.at_level(logging.WARNING):
        cache = CallCache(tmp_path)
        cache.put("a", "1")
        cache.put("b", "2")
        assert (cache.get("a"), cache.get("b")) == ("1", "2")
    assert len(caplog.records) == 1


def test_objects_planted_in_the_folder_are_not_brought_to_life(tmp_path: Path):
    ran = tmp_path / "ran"

    class Planted:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (ran,))

    with diskcache.Cache(str(tmp_path / "calls")) as planted:
        planted.set("k", Planted())
    cache = CallCache(tmp_path / "calls")
    assert cache.get("k") is None
    assert not ran.exists()
    pickle.loads(pickle.dumps(Planted()))  # the bait itself works
    assert ran.exists()
