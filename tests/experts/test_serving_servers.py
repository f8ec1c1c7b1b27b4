"""Servers that are started, watched, restarted and ended, with a scripted program in vLLM's place."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from experts.endpoints import read_endpoints
from experts.images import load_picture
from experts.outcome import Outcome
from experts.pool import ExpertPool
from experts.serving.endpoints_file import EndpointsFile
from experts.serving.gpus import Gpu
from experts.serving.plan import make_plan
from experts.serving.process import clear_leftovers, leftovers
from experts.serving.server import Rules, Server, State
from experts.serving.status import statuses
from experts.serving.supervisor import Supervisor
from maestro.cli.app import run
from registry.errors import UserFault
from registry.registry import Registry

STAND_IN = Path(__file__).with_name("vllm_stand_in.py")
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 90.0
FAST = Rules(
    start_s=60, question_s=30, restarts=2, stable_s=0.5, pause_s=0.1, health_s=0.5, misses=2, drain_s=20, grace_s=2
)
SKILLS = """
skills:
  Ask:
    description: Asks.
    subskills:
      Plain: {description: Plain., procedure: {steps: [{ask: "{{ question }}"}]}}
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Bench:
    """A registry of experts named A, B, ..., each with its own stand-in options, and where things are."""

    def __init__(self, folder: Path, **options: list[str]) -> None:
        self.folder = folder
        self.record_file = folder / "record.jsonl"
        self.endpoints = folder / "endpoints.json"
        self.vllm = folder / "vllm"
        self.vllm.write_text(f'#!/bin/sh\nexec {sys.executable} -S {STAND_IN} "$@"\n')
        self.vllm.chmod(0o755)
        self.ports = dict(zip(options, free_ports(len(options)), strict=True))
        text = "experts:\n"
        for name, words in options.items():
            extra = json.dumps([*words, "--do-record", str(self.record_file)])
            text += (
                f"  {name}:\n    description: d\n    parameters_b: 0.01\n"
                f"    serving: {{extra_args: {extra}, kv_kib_per_token: 1}}\n"
                "    limits: {timeout_s: 20, max_concurrency: 64}\n    backend:\n      type: openai\n"
                f"      model: lab/{name}\n      replicas: [{{url: 'http://127.0.0.1:{self.ports[name]}/v1'}}]\n"
            )
        self.registry_file = folder / "registry.yaml"
        self.registry_file.write_text(text + SKILLS)
        self.registry = Registry.load(self.registry_file)

    def records(self) -> list[dict[str, Any]]:
        if not self.record_file.exists():
            return []
        return [json.loads(line) for line in self.record_file.read_text().splitlines()]

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}/v1"

    def published(self) -> dict[str, list[str]]:
        found = read_endpoints(self.endpoints)
        return {name: [replica.url for replica in entry.replicas] for name, entry in found.experts.items()}


class Launch:
    """A supervisor that runs in this event loop."""

    def __init__(self, bench: Bench, rules: Rules) -> None:
        self.said: list[str] = []
        self.stop, self.hurry, self.settled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        host = (Gpu(None, 64, 64),)
        plan = make_plan(bench.registry, host, utilization=0.9, vllm=str(bench.vllm), start=True)
        self.file = EndpointsFile(bench.endpoints)
        self.file.__enter__()
        self.supervisor = Supervisor(
            plan.launches, self.file, logs=bench.folder / "logs", rules=rules, say=self.said.append
        )
        self.task = asyncio.create_task(self.supervisor.run(self.stop, self.hurry, self.settled.set))

    def server(self, name: str) -> Server:
        return next(server for server in self.supervisor.servers if server.launch.name == f"lab/{name}")

    async def until(self, holds: Callable[[], Any], what: str = "it") -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self.said}"
            await asyncio.sleep(0.02)

    async def ready(self) -> None:
        done, _ = await asyncio.wait(
            [asyncio.create_task(self.settled.wait()), self.task],
            timeout=PATIENCE_S,
            return_when=asyncio.FIRST_COMPLETED,
        )
        assert done and self.settled.is_set(), self.said


@contextlib.asynccontextmanager
async def launched(bench: Bench, rules: Rules = FAST) -> AsyncIterator[Launch]:
    launch = Launch(bench, rules)
    try:
        yield launch
        launch.stop.set()
        await asyncio.wait_for(asyncio.shield(launch.task), PATIENCE_S)
    finally:
        launch.stop.set()
        launch.hurry.set()
        await asyncio.gather(launch.task, return_exceptions=True)
        launch.file.__exit__()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    yield lambda **options: Bench(tmp_path, **options)
    clear_leftovers(str(tmp_path / "endpoints.json"))


def main_pid(bench: Bench) -> int:
    """The process that listens, as last recorded."""
    return [entry["pid"] for entry in bench.records() if "listens" in entry][-1]


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


def test_status_shows_health_queue_latency_and_breaker(bench, capsys: pytest.CaptureFixture[str]) -> None:
    one = bench(A=["--do-queue"])

    async def main() -> None:
        async with launched(one, replace(FAST, drain_s=0.1)) as launch:
            await launch.ready()
            content = json.loads(one.endpoints.read_text())
            dead = {"model": "lab/A", "replicas": [{"url": f"http://127.0.0.1:{free_ports(1)[0]}/v1", "weight": 1.0}]}
            other = {"model": "lab/other", "replicas": content["experts"]["A"]["replicas"]}
            content |= {"experts": content["experts"] | {"Dead": dead, "Other": other}}
            path = one.folder / "more.json"
            path.write_text(json.dumps(content))
            found = {s.experts: s for s in await statuses(read_endpoints(path), one.registry, 20)}
            well, dead_, other_ = found["A",], found["Dead",], found["Other",]
            assert (well.healthy, well.running, well.waiting, well.breaker, well.fault) == (True, 0, 3, "closed", None)
            assert well.latency_s is not None and 0 < well.latency_s < 20
            assert (dead_.healthy, dead_.running, dead_.breaker) == (False, None, "open")
            assert other_.breaker == "closed" and "serves lab/A, not 'lab/other'" in str(other_.fault)
            words = ["experts", "status", "--registry", str(one.registry_file), "--endpoints"]
            assert await asyncio.to_thread(run, [*words, str(one.endpoints), "--json"]) == 0
            (record,) = json.loads(capsys.readouterr().out)["servers"]
            assert (record["model"], record["waiting"], record["breaker"]) == ("lab/A", 3, "closed")
            assert await asyncio.to_thread(run, [*words, str(path)]) == 1
            assert "not well" in capsys.readouterr().out

    asyncio.run(main())


def test_a_key_of_the_registry_protects_the_server_and_must_be_set(bench, monkeypatch, capsys) -> None:
    one = bench(A=[])
    one.registry_file.write_text(
        one.registry_file.read_text().replace("type: openai", "type: openai\n      api_key_env: A_KEY")
    )
    one.registry = Registry.load(one.registry_file)
    words = ["experts", "serve", "--registry", str(one.registry_file), "--cpu", "--vllm", str(one.vllm)]
    monkeypatch.delenv("A_KEY", raising=False)
    assert run([*words, "--endpoints", str(one.endpoints)]) == 2
    assert "the variable A_KEY is not set" in capsys.readouterr().err
    monkeypatch.setenv("A_KEY", "secret-7")

    async def main() -> None:
        async with launched(one) as launch:
            await launch.ready()
            assert not any("secret-7" in line for line in launch.said)

    asyncio.run(main())
    started = next(entry for entry in one.records() if "started" in entry)
    assert started["env"]["VLLM_API_KEY"] == "secret-7"
    assert "secret-7" not in json.dumps(started["started"])
    assert next(entry for entry in one.records() if "asked" in entry)["key"] == "Bearer secret-7"


def test_a_program_that_is_not_there_is_one_message(bench, capsys: pytest.CaptureFixture[str]) -> None:
    one = bench(A=[])
    words = ["experts", "serve", "--registry", str(one.registry_file), "--cpu", "--vllm", "/nowhere/vllm"]
    assert run([*words, "--endpoints", str(one.endpoints)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: there is no program '/nowhere/vllm'") and "--vllm PATH" in printed
