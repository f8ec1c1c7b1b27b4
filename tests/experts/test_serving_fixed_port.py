"""A server whose port stands in a file of its own, as that of a Ray Serve application does."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace

import pytest
from serving_doubles import FAST, Bench

from experts.serving.endpoints_file import EndpointsFile
from experts.serving.gpus import Gpu
from experts.serving.plan import make_plan
from experts.serving.supervisor import Supervisor
from registry.errors import UserFault


def test_it_is_never_looked_for_at_another_port(bench: Callable[..., Bench]) -> None:
    one, said = bench(A=[]), []
    plan = make_plan(one.registry, (Gpu(None, 64, 64),), utilization=0.9, vllm=str(one.vllm), start=True)

    async def main() -> Supervisor:
        with socket.socket() as other, EndpointsFile(one.endpoints) as file:
            other.bind(("127.0.0.1", one.ports["A"]))
            other.listen()
            fixed = replace(plan.launches[0], words=("true",), wanted_port=one.ports["A"])
            supervisor = Supervisor(
                [fixed], file, logs=one.folder / "logs", rules=replace(FAST, restarts=0), say=said.append
            )
            with pytest.raises(UserFault):
                await supervisor.run(asyncio.Event(), asyncio.Event(), lambda: None)
            return supervisor

    (server,) = asyncio.run(main()).servers
    assert (server.starts, server.port) == (0, None)
    assert f"port {one.ports['A']}, at which it would listen, is in use" in " ".join(said)
