"""The end of serving: who is waited for, and that nothing survives it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from serving_doubles import FAST, PATIENCE_S, ROOT, launched

from experts.serving.endpoints_file import EndpointsFile
from experts.serving.process import leftovers
from experts.serving.server import State
from registry.errors import UserFault


def test_the_end_waits_for_what_runs_but_sends_nobody_there_any_more(bench) -> None:
    one = bench(A=["--do-answer-s", "1.5"])

    async def main() -> None:
        async with launched(one) as launch, httpx.AsyncClient(trust_env=False, timeout=60) as http:
            await launch.ready()
            body = {"model": "lab/A", "messages": [{"role": "user", "content": [{"type": "text", "text": "late"}]}]}
            running = asyncio.create_task(http.post(one.url("A") + "/chat/completions", json=body))
            await launch.until(lambda: any(e.get("asked") == "late" for e in one.records()), "the request")
            launch.stop.set()
            await launch.until(lambda: one.published() == {}, "the file to be empty")
            assert not running.done()
            reply = await running
            assert reply.json()["choices"][0]["message"]["content"] == "you asked: late"
            await launch.task
            assert launch.server("A").state is State.STOPPED

    asyncio.run(main())


def test_nothing_survives_the_end_not_even_what_will_not_go(bench) -> None:
    two = bench(A=["--do-ignore-term", "--do-child"], B=["--do-child", "--do-far-child"])

    async def main() -> None:
        async with launched(two) as launch:
            await launch.ready()
            assert len(leftovers(launch.file.mark)) == 6  # keeper, server and child of each
        assert leftovers(launch.file.mark) == []

    asyncio.run(main())


def test_asking_twice_for_the_end_ends_at_once(bench) -> None:
    one = bench(A=["--do-answer-s", "40", "--do-ignore-term", "--do-child", "--do-far-child"])

    async def main() -> None:
        async with launched(one, replace(FAST, grace_s=60, drain_s=60, question_s=90)) as launch:
            await launch.until(lambda: any("asked" in entry for entry in one.records()), "the question")
            launch.stop.set()
            await asyncio.sleep(0.1)
            launch.hurry.set()
            asked = time.monotonic()
            await launch.task
            assert time.monotonic() - asked < 30
            assert leftovers(launch.file.mark) == []

    asyncio.run(main())


def test_nothing_survives_a_launcher_that_is_killed_hard(bench, tmp_path: Path) -> None:
    one = bench(A=["--do-child"])
    command = [
        *(sys.executable, "-m", "maestro.cli.app", "experts", "serve", "--registry", str(one.registry_file)),
        *("--cpu", "--vllm", str(one.vllm), "--endpoints", str(one.endpoints), "--json"),
    ]
    launcher = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert launcher.stdout is not None
        told = json.loads(launcher.stdout.readline())
        assert told["servers"] == [{"model": "lab/A", "url": one.url("A"), "state": "ready"}]
        with pytest.raises(UserFault, match=f"another launcher \\(process {launcher.pid}\\) serves into"):
            EndpointsFile(one.endpoints).__enter__()
        assert leftovers(str(one.endpoints))
    finally:
        launcher.kill()
        launcher.wait()
    deadline = time.monotonic() + PATIENCE_S
    while leftovers(str(one.endpoints)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert leftovers(str(one.endpoints)) == []


def test_what_a_killed_launcher_left_is_ended_by_the_next(bench) -> None:
    one = bench(A=[])
    lost = subprocess.Popen(["sleep", "600"], env={**os.environ, "MAESTRO_SERVING": str(one.endpoints)})

    async def main() -> None:
        async with launched(one) as launch:
            await launch.ready()
            assert launch.said[0] == "ended 1 processes that a killed launcher had left behind"

    asyncio.run(main())
    assert lost.wait(timeout=10) == -signal.SIGTERM
