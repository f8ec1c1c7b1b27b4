"""How bytes travel: the client library's HTTP layer, on aiohttp, with a limit on every body.

The library's own layer costs twice the processor time, and reads an error's body whole, however large.
Importing this module takes most of a second; only code that really calls a server should.
"""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from yarl import URL

from experts.clients.failure import Failed, from_status
from experts.outcome import Outcome

_ERROR_BYTES = 16_384  # of a failed response's body are read
_KEEP_ALIVE_S = 3.0  # below the 5 s after which common servers close: a request sent just then is lost
_COPIED_BYTES = 1 << 20  # larger bodies are written in pieces
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_OURS = (b"host", b"content-length", b"connection", b"accept-encoding")
_NO_STREAM = httpx2.ByteStream(b"")


class Outgoing(httpx2.Request):
    """A request whose parts are at hand: `address`, the headers as they are `sent`, `body`.

    Taking these out of the library's own object, and putting them in, costs more than sending them.
    """

    def __init__(self, method: str, url: httpx2.URL, headers: httpx2.Headers, body: bytes) -> None:
        super().__init__(method, url, headers=headers, stream=_NO_STREAM)
        self.address, self.body = str(url), body
        self.sent = _headers(headers)

    @classmethod
    def of(cls, request: httpx2.Request) -> Outgoing:
        """The same request."""
        return cls(request.method, request.url, request.headers, request.content)

    def again(self, body: bytes) -> Outgoing:
        """A request that differs in its body alone; what the two share must not be changed."""
        other = Outgoing.__new__(Outgoing)
        other.__dict__ = self.__dict__ | {"body": body}
        return other


class Answered(httpx2.Response):
    """A successful response with its `body` at hand."""

    def __init__(self, status: int, body: bytearray, request: Outgoing) -> None:
        super().__init__(status, stream=_NO_STREAM, request=request)
        self.body = body


class CappedTransport(httpx2.AsyncBaseTransport):
    """Sends requests of one event loop; a reply of more than `max_bytes` is cut off. Every fault is raised as
    `Failed`. There is no time limit here: whoever calls sets one and cancels."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._places: dict[str, tuple[URL, str | None]] = {}
        self._open: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> Answered:
        """The whole response, its status between 200 and 299. Raises Failed."""
        outgoing = request if isinstance(request, Outgoing) else Outgoing.of(request)
        address, body = outgoing.address, outgoing.body
        try:
            url, proxy = self._place(address)
            async with self._session().request(
                outgoing.method,
                url,
                data=body if len(body) < _COPIED_BYTES else io.BytesIO(body),
                headers=outgoing.sent,
                proxy=proxy,
                allow_redirects=False,
            ) as response:
                if not 200 <= response.status < 300:
                    head = await _read(response, _ERROR_BYTES)
                    text = bytes(head[:_ERROR_BYTES]).decode("utf-8", "replace")
                    raise from_status(address, response.status, text, _retry_after(response))
                content = await _read(response, self._max_bytes)
        except Failed:
            raise
        except Exception as error:  # aiohttp's own, the system's, a bad URL, a reply that is not HTTP
            what = f"{address}: {type(error).__name__}: {error}"
            raise Failed(Outcome.UNAVAILABLE, what, again=True, alive=False) from None
        if len(content) > self._max_bytes:
            what = f"the reply is larger than {self._max_bytes} bytes"
            raise Failed(Outcome.TOO_LONG, what, again=False, alive=True)
        return Answered(response.status, content, outgoing)

    async def aclose(self) -> None:
        """Close all connections."""
        session, self._open = self._open, None
        if session is not None:
            await session.close()

    def _session(self) -> aiohttp.ClientSession:
        if self._open is None:
            self._open = aiohttp.ClientSession(
                # How many calls go on at once is the caller's to limit.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                auto_decompress=False,
            )
        return self._open

    def _place(self, address: str) -> tuple[URL, str | None]:
        """The URL taken apart and its proxy, worked out once for each address."""
        if address not in self._places:
            self._places[address] = (URL(address), _proxy(address))
        return self._places[address]


class PlainClient(httpx2.AsyncClient):
    """A client that builds a request as it is told and hands it to its transport. What the library does around that
    (defaults, cookies, redirects, authentication flows, hooks) is not used here, and is a fifth of a call's cost."""

    def __init__(self, transport: CappedTransport) -> None:
        # No look into the environment: a proxy found there would go round the transport.
        super().__init__(transport=transport, timeout=None, trust_env=False)

    def build_request(self, method: str, url: Any, **given: Any) -> Outgoing:
        """The request with these headers and this content."""
        return Outgoing(method, httpx2.URL(url), httpx2.Headers(given.get("headers")), given.get("content") or b"")

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """The whole response. Raises Failed."""
        return await self._transport.handle_async_request(request)


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytearray:
    """The body, or what came of it when it grew over `limit`."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            response.close()
            break
    return body


def _headers(headers: httpx2.Headers) -> dict[str, str]:
    """What a server needs to know; the library's account of itself is left out."""
    kept = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in headers.raw
        if name.lower() not in _OURS and not name.lower().startswith(b"x-stainless")
    }
    return kept | {"Accept-Encoding": "identity"}  # so that the limit counts what was sent


def _proxy(address: str) -> str | None:
    """The environment's proxy for this address; servers on this machine have none."""
    parts = urlsplit(address)
    if parts.hostname in _LOCAL or proxy_bypass(parts.netloc):
        return None
    return getproxies().get(parts.scheme)


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    try:
        return float(response.headers.get("Retry-After", ""))
    except ValueError:  # absent, or a date
        return None
