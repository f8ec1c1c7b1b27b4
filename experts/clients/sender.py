"""One request to one server, through the `openai` package.

The package builds the request (address, key, headers) and its errors; its retries, its time limits and its
models of a reply are off. Importing this module takes most of a second.
"""

from __future__ import annotations

import httpx2
import openai

from experts.clients.failure import Failed
from experts.clients.http_transport import CappedTransport, PlainClient
from experts.outcome import Outcome


class Sender:
    """Sends the requests of one event loop to any server of one expert.

    api_key: goes along with each request. max_reply_bytes: how much of a reply is read.
    """

    def __init__(self, api_key: str | None, max_reply_bytes: int) -> None:
        self._client = openai.AsyncOpenAI(
            base_url="http://localhost/v1",  # never used: addresses are given in full
            api_key=api_key or "none",
            max_retries=0,
            timeout=None,
            http_client=PlainClient(CappedTransport(max_reply_bytes)),
        )

    async def post(self, url: str, body: bytes) -> bytes:
        """The body of the reply to a chat completion request. Raises Failed."""
        try:
            response = await self._client.post(f"{url}/chat/completions", cast_to=httpx2.Response, content=body)
        except Failed:
            raise
        except Exception as error:  # the library's own; some of its versions wrap what a transport raises
            if isinstance(error.__cause__, Failed):
                raise error.__cause__ from None
            what = f"{url}: {type(error).__name__}: {error}"
            raise Failed(Outcome.UNAVAILABLE, what, again=True, alive=False) from None
        return response.content

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()
