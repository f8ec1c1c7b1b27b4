"""What the commands of serving tell: status, keys, a program that is not there."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from serving_doubles import FAST, free_ports, launched

from experts.endpoints import read_endpoints
from experts.serving.status import statuses
from maestro.cli.app import run
from registry.registry import Registry


def test_status_shows_health_queue_latency_breaker_and_version(bench, capsys: pytest.CaptureFixture[str]) -> None:
    one = bench(A=["--do-queue", "--do-version", "0.24.0"])

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
            assert (dead_.healthy, dead_.running, dead_.breaker, dead_.version) == (False, None, "open", None)
            assert well.version == "0.24.0"
            assert other_.breaker == "closed" and "serves lab/A, not 'lab/other'" in str(other_.fault)
            words = ["experts", "status", "--registry", str(one.registry_file), "--endpoints"]
            assert await asyncio.to_thread(run, [*words, str(one.endpoints), "--json"]) == 0
            (record,) = json.loads(capsys.readouterr().out)["servers"]
            assert (record["model"], record["waiting"], record["breaker"]) == ("lab/A", 3, "closed")
            assert record["version"] == "0.24.0"
            assert await asyncio.to_thread(run, [*words, str(path)]) == 1
            printed = capsys.readouterr().out
            assert "not well" in printed and "vllm 0.24.0" in printed

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
