"""A server that stands in for an expert: it answers chat completions after a delay, and fails on purpose.

    python benchmarks/expert_stub.py --delay-ms 500
    python benchmarks/expert_stub.py --ports 2 --delay-ms 20 --reset 0.05 --status-500 0.05 --hang 0.02 --garbage 0.02

The first line on standard output is JSON, {"ports": [...]}, once all of them listen on the loopback address. The answer
is the number that the prompt holds between two `#`. `GET /counts` tells how many requests met which fate. It ends when
its standard input does, so that it never outlives who started it. Lean on purpose: it must not be the bottleneck of
what is measured with it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import socket
import struct
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from registry.registry import Registry

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_NUMBER = re.compile(rb"#(\d+)#")
_LARGEST = 64 * 1024 * 1024


class Fates:
    """Draws what happens to each request, and counts it."""

    def __init__(self, shares: dict[str, float], seed: int) -> None:
        self._random = random.Random(seed)
        self._kinds = [*shares, "ok"]
        self._weights = [*shares.values(), 1.0 - sum(shares.values())]
        self.counts: Counter[str] = Counter()

    def draw(self) -> str:
        """One of the given kinds, or "ok"."""
        kind = self._random.choices(self._kinds, self._weights)[0] if len(self._kinds) > 1 else "ok"
        self.counts[kind] += 1
        return kind


class Connection(asyncio.Protocol):
    """One keep-alive connection; requests are answered in turn."""

    def __init__(self, fates: Fates, delay_s: float) -> None:
        self._fates, self._delay_s = fates, delay_s
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._buffer, 0, end)
            whole = end + 4 + (int(length[1]) if length else 0)
            if whole > _LARGEST:
                self._transport.abort()
            if len(self._buffer) < whole:
                return
            if self._buffer.startswith(b"GET"):
                self._send(b"200 OK", json.dumps(self._fates.counts).encode())
            else:
                self._answer(_NUMBER.search(self._buffer, end, whole))
            del self._buffer[:whole]

    def _answer(self, number: re.Match[bytes] | None) -> None:
        later = asyncio.get_running_loop().call_later
        fate = self._fates.draw()
        if fate == "ok":
            later(self._delay_s, self._send, b"200 OK", _completion(number[1] if number else b"42"))
        elif fate == "reset":
            later(self._delay_s, self._reset)
        elif fate == "status_500":
            later(self._delay_s, self._send, b"500 Internal Server Error", b'{"error": {"message": "made to fail"}}')
        elif fate == "garbage":
            later(self._delay_s, self._send, b"200 OK", b'{"choices": [{"mess')
        # "hang": no answer, ever

    def _send(self, status: bytes, body: bytes) -> None:
        if not self._transport.is_closing():
            head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
            self._transport.write(head + body)

    def _reset(self) -> None:
        connection = self._transport.get_extra_info("socket")
        if connection is not None and not self._transport.is_closing():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()


def _completion(answer: bytes) -> bytes:
    return (
        b'{"id": "1", "object": "chat.completion", "model": "stub", "choices": [{"index": 0, "message": '
        b'{"role": "assistant", "content": "%b"}, "finish_reason": "stop"}], '
        b'"usage": {"prompt_tokens": 20, "completion_tokens": 1, "total_tokens": 21}}'
    ) % answer


@dataclass(frozen=True)
class Stub:
    """A running server."""

    urls: tuple[str, ...]

    def counts(self) -> dict[str, int]:
        """How many requests met which fate."""
        address = self.urls[0].removesuffix("/v1") + "/counts"
        with urllib.request.urlopen(address, timeout=10) as reply:
            return json.load(reply)


@contextlib.contextmanager
def running(**options: float) -> Iterator[Stub]:
    """A server in its own process, with this file's options (`delay_ms=500`)."""
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    with subprocess.Popen([sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            ports = json.loads(process.stdout.readline())["ports"]
            yield Stub(tuple(f"http://127.0.0.1:{port}/v1" for port in ports))
        finally:
            process.stdin.close()


def registry_for(urls: tuple[str, ...], **limits: Any) -> Registry:
    """A registry of one expert, `Stub`, at these addresses, and one skill, `Counting`, that only asks it."""
    from registry.registry import Registry
    from registry.schema import Expert, Skill

    backend = {"type": "openai", "model": "stub", "replicas": [{"url": url} for url in urls]}
    expert = {"name": "Stub", "description": "Repeats a number.", "backend": backend, "limits": limits}
    asks = {"name": "Ask", "description": "Ask.", "procedure": {"steps": [{"ask": "{{ question }}"}]}}
    skill = {"name": "Counting", "description": "Counts.", "subskills": [asks]}
    return Registry((Expert.model_validate(expert),), (Skill.model_validate(skill),))


async def serve(ports: int, delay_s: float, fates: Fates) -> None:
    """Listens on free ports, says which, and serves until standard input ends."""
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(lambda: Connection(fates, delay_s), "127.0.0.1", 0, backlog=2048) for _ in range(ports)
    ]
    print(json.dumps({"ports": [server.sockets[0].getsockname()[1] for server in servers]}), flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), lambda: None if sys.stdin.buffer.read1(4096) else ended.set())
    await ended.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ports", type=int, default=1)
    parser.add_argument("--delay-ms", type=float, default=500.0)
    parser.add_argument("--seed", type=int, default=0)
    for kind in ("reset", "status-500", "hang", "garbage"):
        parser.add_argument(f"--{kind}", type=float, default=0.0, metavar="SHARE")
    args = parser.parse_args()
    shares = {kind: getattr(args, kind) for kind in ("reset", "status_500", "hang", "garbage") if getattr(args, kind)}
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(serve(args.ports, args.delay_ms / 1000, Fates(shares, args.seed)))


if __name__ == "__main__":
    main()
