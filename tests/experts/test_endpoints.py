"""The endpoints file: where the servers of a registry's experts and tools are now."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from expert_doubles import expert as program
from server_doubles import dead_url, served_registry, servers

from experts.endpoints import with_endpoints
from experts.outcome import Delegation
from experts.pool import ExpertPool
from registry.errors import UserFault
from registry.registry import Registry
from registry.schema import Expert, OpenAIBackend, Tool


def written(path: Path, experts: Any = None, tools: Any = None, **fields: Any) -> Path:
    content = {"version": 1, "written": 1767225600.0, "experts": experts or {}, "tools": tools or {}, **fields}
    path.write_text(json.dumps(content))
    return path


def entry(*urls: str, model: str = "m") -> dict[str, Any]:
    return {"model": model, "replicas": [{"url": url, "weight": 1.0} for url in urls]}


def registry() -> Registry:
    def served(model: str) -> dict[str, Any]:
        return {"type": "openai", "model": model, "api_key_env": "KEY", "replicas": [{"url": "http://old:1/v1"}]}

    return Registry(
        (
            Expert(name="Chart-R1", description="d", backend=served("chart")),  # type: ignore[arg-type]
            Expert(name="Geometer", description="d", backend=served("geo")),  # type: ignore[arg-type]
            program("Embedded"),
        ),
        (),
        (Tool(name="ocr", description="d", backend=served("ocr")),),  # type: ignore[arg-type]
    )


def place(part: Expert | Tool) -> tuple[str, list[tuple[str, float]], str | None]:
    assert isinstance(part.backend, OpenAIBackend)
    replicas = [(replica.url, replica.weight) for replica in part.backend.replicas]
    return part.backend.model, replicas, part.backend.api_key_env


def test_what_the_file_names_moves_and_the_rest_stays(tmp_path: Path):
    replicas = [{"url": "http://127.0.0.1:8101/v1/", "weight": 2.0}, {"url": "http://127.0.0.1:8102/v1"}]
    file = written(
        tmp_path / "endpoints.json",
        {"chart r1": {"model": "served-name", "replicas": replicas}},
        {"OCR": entry("http://127.0.0.1:8103/v1", model="glm")},
    )
    moved = with_endpoints(registry(), file)
    there = [("http://127.0.0.1:8101/v1", 2.0), ("http://127.0.0.1:8102/v1", 1.0)]
    assert place(moved.expert("Chart-R1")) == ("served-name", there, "KEY")
    assert place(moved.tool("ocr")) == ("glm", [("http://127.0.0.1:8103/v1", 1.0)], "KEY")
    assert place(moved.expert("Geometer")) == ("geo", [("http://old:1/v1", 1.0)], "KEY")
    assert moved.expert("Embedded") == registry().expert("Embedded")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        ("{", "is not of the right form"),
        ("[]", "is not of the right form"),
        ('{"version": 2, "written": 1}', "is not of the right form: version"),
        ('{"version": 1}', "is not of the right form: written"),
        ('{"version": 1, "written": 1, "expert": {}}', "is not of the right form: expert"),
        ('{"version": 1, "written": 1, "experts": {"Chart-R1": {"model": "m", "replicas": []}}}', "replicas"),
        (
            '{"version": 1, "written": 1, "experts": {"Chart-R1": {"model": "m", "replicas": [{"url": "8101"}]}}}',
            "experts.Chart-R1.replicas.0.url",
        ),
    ],
)
def test_a_file_that_is_none_is_one_clear_fault(tmp_path: Path, content: str | None, said: str):
    file = tmp_path / "endpoints.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserFault) as caught:
        with_endpoints(registry(), file)
    assert said in caught.value.what
    assert (caught.value.where, "maestro experts serve" in str(caught.value.fix)) == (str(file), True)


def test_a_huge_file_is_not_read(tmp_path: Path):
    file = tmp_path / "endpoints.json"
    file.write_text(" " * 5_000_000)
    with pytest.raises(UserFault, match="larger than 4194304 bytes"):
        with_endpoints(registry(), file)


@pytest.mark.parametrize(
    ("experts", "tools", "said", "fix"),
    [
        ({"Chart-R2": entry("http://a/v1")}, {}, "the expert 'Chart-R2', which the registry does not", "Chart-R1"),
        ({}, {"orc": entry("http://a/v1")}, "the tool 'orc', which the registry does not", "ocr"),
        ({"Embedded": entry("http://a/v1")}, {}, "'Embedded', which is a program and not a server", "leave it out"),
        ({"Geometer": entry("http://a/v1"), "geometer": entry("http://b/v1")}, {}, "'Geometer' twice", ""),
    ],
)
def test_names_that_do_not_fit_the_registry_are_one_clear_fault(tmp_path: Path, experts, tools, said, fix):
    with pytest.raises(UserFault) as caught:
        with_endpoints(registry(), written(tmp_path / "endpoints.json", experts, tools))
    assert said in caught.value.what
    assert fix in (caught.value.fix or "")


def test_a_pool_asks_the_servers_of_the_file_and_keeps_its_registry(tmp_path: Path):
    with servers() as (server,):
        given = served_registry([dead_url()])
        file = written(tmp_path / "endpoints.json", {"Reader": entry(server.url, model="served-name")})

        async def main() -> Delegation:
            async with ExpertPool(given, endpoints=file) as pool:
                assert pool.registry.digest == given.digest
                return await pool.delegate("Reader", "Charts", "How many?", ())

        assert asyncio.run(main()).text == "42"
        assert server.requests[0]["model"] == "served-name"


def test_a_pool_with_a_wrong_file_is_not_made(tmp_path: Path):
    with pytest.raises(UserFault, match="'Chart-R9'"):
        ExpertPool(registry(), endpoints=written(tmp_path / "endpoints.json", {"Chart-R9": entry("http://a/v1")}))
