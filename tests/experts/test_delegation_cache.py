"""What delegations need not compute twice, and what they must."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from expert_doubles import (
    CLASSIFIED,
    OTHER,
    PICTURE,
    Scripted,
    calls_of,
    delegate,
    expert,
    skill,
    tool,
)

from experts.outcome import Delegation
from experts.pool import ExpertPool
from registry.registry import Registry


def test_identical_deterministic_delegations_are_computed_once(programs: str):
    registry = Registry((expert("Reader", f"{programs}:Echo", deterministic=True),), (skill(),))

    async def main() -> list[Delegation]:
        async with ExpertPool(registry) as pool:
            together = await asyncio.gather(
                *(pool.delegate("Reader", "Charts", "bar?", (PICTURE,)) for _ in range(4))
            )
            return [*together, await pool.delegate("Reader", "Charts", "bar?", (PICTURE,))]

    done = asyncio.run(main())
    assert [one.text for one in done] == ["bar?"] * 5
    assert [one.cached for one in done] == [False, True, True, True, True]
    assert [one.usage.calls for one in done] == [1, 0, 0, 0, 0]
    assert calls_of(programs) == ["bar?"]


def test_a_deterministic_expert_is_asked_once_which_procedure_fits():
    backend = Scripted(lambda request: "line" if "Reply with" in request.prompt else request.prompt)
    registry = Registry((expert("Reader", deterministic=True),), (skill(**CLASSIFIED),))

    async def main() -> list[Delegation]:
        async with ExpertPool(registry, backends={"Reader": backend}) as pool:
            return [await pool.delegate("Reader", "Charts", "What is shown?", (PICTURE,)) for _ in range(2)]

    done = asyncio.run(main())
    assert [(one.text, one.reason, one.cached) for one in done] == [
        ("as line", "classifier", False),
        ("as line", "classifier", True),
    ]
    assert [request.prompt for request in backend.requests][1:] == ["as line"]
    assert backend.requests[0].pictures == (PICTURE,)


def test_results_outlive_the_pool_in_a_folder_until_the_revision_changes(programs: str, tmp_path: Path):
    def once(**fields: Any) -> Delegation:
        one = expert("Reader", f"{programs}:Echo", deterministic=True, **fields)
        return delegate(Registry((one,), (skill(),)), "bar?", cache_dir=tmp_path / "calls")

    assert [once().cached, once().cached, once(revision="2").cached] == [False, True, False]


def test_another_picture_question_or_procedure_is_another_call(programs: str):
    one = expert("Reader", f"{programs}:Echo", deterministic=True)
    registry = Registry((one,), (skill("Charts"), skill("Lines", line=[{"ask": "{{ question }}"}])))

    async def main() -> list[bool]:
        async with ExpertPool(registry) as pool:
            done = [
                await pool.delegate("Reader", *what)
                for what in (
                    ("Charts", "bar?", (PICTURE,)),
                    ("Charts", "bar?", (OTHER,)),
                    ("Charts", "bar!", (PICTURE,)),
                    ("Charts", "bar?", ()),
                    ("Lines", "bar?", (PICTURE,)),
                )
            ]
            return [one.cached for one in done]

    assert asyncio.run(main()) == [False] * 5


def test_a_tool_that_is_not_deterministic_runs_every_time_and_keeps_nothing(programs: str):
    one = expert("Reader", f"{programs}:Echo", deterministic=True)
    steps = [{"tool": "reader", "save": "found"}, {"ask": "{{ found.text }}"}]
    registry = Registry((one,), (skill(bar=steps),), (tool(f"{programs}:Reader", deterministic=False),))

    async def main() -> list[bool]:
        async with ExpertPool(registry) as pool:
            await pool.prepare()
            return [(await pool.delegate("Reader", "Charts", "bar?", (PICTURE,))).cached for _ in range(2)]

    assert asyncio.run(main()) == [False, False]
    assert calls_of(programs).count(("run", 60, {})) == 2


def test_what_was_done_differently_is_said_of_a_cached_result_too(programs: str):
    registry = Registry((expert("Reader", f"{programs}:Echo", deterministic=True),), (skill(),))

    async def main() -> list[Delegation]:
        async with ExpertPool(registry) as pool:
            return [await pool.delegate("Reader", "Charts", "bar?", (PICTURE, OTHER)) for _ in range(2)]

    assert [(done.cached, done.note) for done in asyncio.run(main())] == [
        (False, "2 pictures for Reader, which takes 1: the first 1 sent"),
        (True, "2 pictures for Reader, which takes 1: the first 1 sent"),
    ]


def test_failures_are_not_kept(programs: str):
    registry = Registry((expert("Reader", f"{programs}:Odd", deterministic=True),), (skill(),))

    async def main() -> list[Delegation]:
        async with ExpertPool(registry) as pool:
            return [
                await pool.delegate("Reader", "Charts", q, ()) for q in ("raise", "raise", "empty", "empty")
            ]

    done = asyncio.run(main())
    assert [one.cached for one in done] == [False, False, False, True]
    assert calls_of(programs) == ["raise", "raise", "empty"]


def test_experts_that_sample_are_asked_every_time():
    backend = Scripted(lambda _: "ok")
    registry = Registry((expert("Reader"),), (skill(),))

    async def main() -> None:
        async with ExpertPool(registry, backends={"Reader": backend}) as pool:
            for _ in range(2):
                assert not (await pool.delegate("Reader", "Charts", "bar?", ())).cached

    asyncio.run(main())
    assert len(backend.requests) == 2


def test_a_file_where_the_cache_folder_should_be_breaks_nothing(programs: str, tmp_path: Path):
    (tmp_path / "calls").write_text("a file")
    registry = Registry((expert("Reader", f"{programs}:Echo", deterministic=True),), (skill(),))
    assert delegate(registry, "bar?", cache_dir=tmp_path / "calls").text == "bar?"


def test_one_pool_serves_event_loops_in_several_threads(programs: str):
    registry = Registry((expert("Reader", f"{programs}:Echo", limits={"max_concurrency": 1}),), (skill(),))
    pool, texts = ExpertPool(registry), []

    def loop() -> None:
        async def many() -> list[Delegation]:
            return await asyncio.gather(
                *(pool.delegate("Reader", "Charts", f"bar {n}", ()) for n in range(10))
            )

        texts.append([done.text for done in asyncio.run(many())])

    threads = [threading.Thread(target=loop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(pool.aclose())
    assert texts == [[f"bar {n}" for n in range(10)]] * 3


def test_an_answer_without_an_optional_tool_is_not_kept(programs: str):
    steps = [{"tool": "reader", "args": {"give": "set"}, "optional": True}, {"ask": "{{ question }}"}]
    registry = Registry(
        (expert("Reader", f"{programs}:Echo", deterministic=True),),
        (skill(steps=steps),),
        (tool(f"{programs}:Careless"),),
    )

    async def main() -> list[Delegation]:
        async with ExpertPool(registry) as pool:
            return [await pool.delegate("Reader", "Charts", "bar?", (PICTURE,)) for _ in range(2)]

    done = asyncio.run(main())
    assert [(one.text, one.cached) for one in done] == [("bar?", False)] * 2
    assert done[0].note is not None and done[0].note.startswith("without an optional tool: skill 'Charts'")
