"""The OpenAI library's client with bounds that it lacks: no retries or waits of its own, error replies cut short."""

from __future__ import annotations

from typing import Any

from orchestrator.policy import InfrastructureError

_ERROR_BYTES = 16_384


def bounded_client(url: str, key: str) -> Any:
    """A client of the running event loop; whoever calls it sets the deadline. Importing the library takes most of a
    second."""
    import openai

    http = openai.DefaultAsyncHttpxClient(event_hooks={"response": [_stop_at_bad_status]})
    return openai.AsyncOpenAI(base_url=url, api_key=key, timeout=None, max_retries=0, http_client=http)


def failure(error: Exception, url: str) -> InfrastructureError:
    """What the library raised, as a failure of the machinery."""
    import openai

    if isinstance(error, InfrastructureError):
        return error
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        if isinstance(cause, InfrastructureError):  # the library wraps what a hook raises
            return cause
        return InfrastructureError(f"{url}: {cause or error}")
    return InfrastructureError(f"{url}: {type(error).__name__}: {error}")


async def read_body(response: Any, limit: int, url: str) -> bytes:
    """A streamed reply's body. Raises InfrastructureError where it is larger than `limit` bytes."""
    body = bytearray()
    async for chunk in response.iter_bytes():
        body += chunk
        if len(body) > limit:
            raise InfrastructureError(f"{url}: the reply is larger than {limit} bytes")
    return bytes(body)


async def _stop_at_bad_status(response: Any) -> None:
    """Called before the library sees the response: it would read an error's body whole, however large."""
    if response.status_code < 400:
        return
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= _ERROR_BYTES:
            break
    words = " ".join(bytes(body[:_ERROR_BYTES]).decode("utf-8", "replace").split())
    raise InfrastructureError(f"{response.url.host}: status {response.status_code}: {words[:300]}")
