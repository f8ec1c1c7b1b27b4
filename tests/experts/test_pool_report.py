"""The last word of a pool: how each expert and tool did."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from expert_doubles import PICTURE, Scripted, expert, skill
from server_doubles import dead_url, says, sends, served_registry, servers

from experts.pool import ExpertPool
from experts.pool_report import report_lines
from experts.request import Backend
from registry.registry import Registry
from registry.schema import Tool

READS = {"type": "openai", "model": "reader"}
STEPS = [{"tool": "ocr", "save": "words"}, {"ask": "{{ words }} {{ question }}"}]


def status_of(outcomes: dict[str, int], *replicas: dict[str, Any]) -> dict[str, Any]:
    latency = {"p50": 0.5, "p95": 0.75}
    one = {"calls": sum(outcomes.values()), "outcomes": outcomes, "latency_s": latency, "replicas": list(replicas)}
    return {"experts": {"Reader": one}, "tools": {}}


def test_one_lost_call_in_twenty_is_no_warning_and_more_are():
    few = status_of({"ok": 19, "timeout": 1})
    many = status_of({"ok": 18, "timeout": 1, "given_up": 1})
    wrong = status_of({"ok": 10, "refused": 10})
    assert [report_lines(one)[0][0] for one in (few, many, wrong)] == [logging.INFO, logging.WARNING, logging.INFO]


def test_the_line_names_outcomes_latency_and_what_is_wrong_with_which_server():
    well = {"url": "http://a/v1", "state": "closed", "requests": 30, "failures": {}}
    ill = {"url": "http://b/v1", "state": "open", "requests": 9, "failures": {"unavailable": 8, "timeout": 1}}
    assert report_lines(status_of({"ok": 30, "unavailable": 9}, well, ill)) == [
        (
            logging.WARNING,
            "expert Reader: 39 calls: 30 ok, 9 unavailable; an answer after 0.50 s (p50), 0.75 s (p95); "
            "http://b/v1 failed 1 timeout, 8 unavailable of 9, resting",
        )
    ]


def test_an_expert_that_was_not_called_has_no_line():
    assert report_lines(status_of({})) == []


def test_a_closed_pool_warns_of_an_expert_that_nobody_could_reach(caplog: pytest.LogCaptureFixture):
    async def main() -> None:
        async with ExpertPool(served_registry([dead_url()])) as pool:
            for number in range(20):
                await pool.delegate("Reader", "Charts", f"{number}", ())

    asyncio.run(main())
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("expert Reader: 20 calls: 20 unavailable; http://127.0.0.1:")
    assert warning.endswith(", resting")


def test_status_counts_a_tool_and_the_tokens_of_its_model():
    with servers() as (server,):
        usage = {"prompt_tokens": 300, "completion_tokens": 20}
        server.script = [says("SALE", usage=usage), says("1"), sends(400, b"no")]
        backend = READS | {"replicas": [{"url": server.url}]}
        tool = Tool.model_validate({"name": "ocr", "description": "Text.", "deterministic": False, "backend": backend})
        registry = served_registry([server.url])
        registry = Registry(registry.experts, (skill(bar=STEPS),), (tool,))

        async def main() -> dict[str, Any]:
            async with ExpertPool(registry) as pool:
                for number in range(2):
                    await pool.delegate("Reader", "Charts", f"{number}", (PICTURE,))
                return pool.status()["tools"]["ocr"]

        one = asyncio.run(main())
    assert (one["backend"], one["calls"], one["outcomes"]) == ("openai", 2, {"ok": 1, "refused": 1})
    assert one["tokens"] == {"prompt": 300, "completion": 20}
    assert [server["failures"] for server in one["replicas"]] == [{"refused": 1}]


def test_the_registry_bounds_a_delegation_whoever_asks_for_more_and_callers_may_ask_for_less():
    async def main() -> list[str]:
        slow = expert("Reader", deadline_s=0.3)
        registry = Registry((slow,), (skill(),))
        errors: list[str] = []
        backends: dict[str, Backend] = {"Reader": Scripted(lambda _: 30.0)}
        for default_s, asked_s in ((None, None), (60.0, None), (None, 60.0), (60.0, 0.2), (0.2, None)):
            async with ExpertPool(registry, backends=backends, default_deadline_s=default_s) as pool:
                done = await pool.delegate("Reader", "Charts", "a", (), deadline_s=asked_s)
                errors.append(done.error or "")
        return errors

    assert asyncio.run(main()) == [
        f"not finished after {limit} s, when the delegation's time was up" for limit in (0.3, 0.3, 0.3, 0.2, 0.2)
    ]
