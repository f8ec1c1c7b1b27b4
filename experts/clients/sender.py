"""Sending one chat completion request through the `openai` package.

The one idea: the requests of one expert to one address differ in their bodies alone, so the library builds the first
and the others are that one with another body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import openai

from experts.clients.failure import Failed
from experts.clients.http_transport import Answered, CappedTransport, Outgoing, PlainClient
from experts.outcome import Outcome

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions


class Sender:
    """Sends the requests of one event loop to any server of one expert.

    api_key: goes along with each request. max_reply_bytes: how much of a reply is read.
    """

    def __init__(self, api_key: str | None, max_reply_bytes: int) -> None:
        self._client = _Client(
            base_url="http://localhost/v1",  # never used: addresses are given in full
            api_key=api_key or "none",
            max_retries=0,
            timeout=None,
            http_client=PlainClient(CappedTransport(max_reply_bytes)),
        )

    async def post(self, url: str, body: bytes) -> bytes | bytearray:
        """The body of the reply to a chat completion request. Raises Failed."""
        try:
            response = await self._client.send_body(f"{url}/chat/completions", body)
        except Failed:
            raise
        except Exception as error:  # the library's own; some of its versions wrap what a transport raises
            if isinstance(error.__cause__, Failed):
                raise error.__cause__ from None
            what = f"{url}: {type(error).__name__}: {error}"
            raise Failed(Outcome.UNAVAILABLE, what, again=True, alive=False) from None
        return response.body if isinstance(response, Answered) else response.content

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()


class _Client(openai.AsyncOpenAI):
    """The library's client. Where one of its versions no longer calls `_build_request`, it builds each request anew:
    the same requests, for twice the processor time."""

    def __init__(self, **options: Any) -> None:
        self._first: dict[str, tuple[FinalRequestOptions, Outgoing]] = {}
        super().__init__(**options)

    async def send_body(self, url: str, body: bytes) -> httpx2.Response:
        """POST `body` to `url`."""
        if url not in self._first:
            return await self.post(url, cast_to=httpx2.Response, content=body)
        options, _ = self._first[url]
        return await self.request(httpx2.Response, options.model_copy(update={"content": body}))

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        body = options.content
        if options.url in self._first and isinstance(body, bytes):
            return self._first[options.url][1].again(body)
        made = super()._build_request(options, retries_taken=retries_taken)
        # A header that names one request only must not be kept.
        if self._idempotency_header is None and isinstance(made, Outgoing) and isinstance(body, bytes):
            self._first[options.url] = options.model_copy(update={"content": b""}), made.again(b"")
        return made
