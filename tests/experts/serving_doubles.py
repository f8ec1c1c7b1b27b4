"""Help for the tests of serving: stand-ins for vLLM under a registry of their own, and a supervisor over them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from experts.endpoints import read_endpoints
from experts.serving.endpoints_file import EndpointsFile
from experts.serving.gpus import Gpu
from experts.serving.plan import make_plan
from experts.serving.server import Rules, Server
from experts.serving.supervisor import Supervisor
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


def main_pid(bench: Bench) -> int:
    """The process that listens, as last recorded."""
    return [entry["pid"] for entry in bench.records() if "listens" in entry][-1]
