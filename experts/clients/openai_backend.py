"""An expert behind any OpenAI-compatible server.

The one idea: the library builds and sends one request; everything that decides (which replica, whether
again, how many bytes, what the reply means) is ours and leaves as an `ExpertReply` or an `ExpertFailure`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import re
from typing import Any

from experts.clients.chat_reply import read_reply
from experts.clients.replicas import Lease, Replicas
from experts.clients.retry import RetryPolicy, retried
from experts.outcome import ExpertFailure, ExpertReply, Outcome
from experts.per_loop import PerLoop
from experts.request import Request
from registry.schema import Limits, OpenAIBackend

_NO_ACCESS = frozenset({401, 403, 404})  # a wrong key or model name says nothing about the question
_OVERLONG = re.compile(r"context.{0,20}(length|window)|too (long|large|many tokens)|max_model_len", re.I)
# Words in a prompt must not act as a chat marker or an image placeholder of the model behind the server.
_MARKER = re.compile(r"<(\|[^|<>\s]{1,40}\||image|video|IMG_CONTEXT|img|/img)>", re.IGNORECASE)
_ERROR_BYTES = 16_384
_CHARACTERS_PER_TOKEN = 16  # far more than any text has on average


class _Failed(Exception):
    """One try failed. `alive`: what it says about the server; `again`: whether another try makes sense."""

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        *,
        again: bool,
        alive: bool | None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome, self.message = outcome, message
        self.again, self.alive, self.retry_after_s = again, alive, retry_after_s


class OpenAIExpertBackend:
    """One expert's servers. Safe to use from several event loops."""

    def __init__(
        self,
        backend: OpenAIBackend,
        limits: Limits,
        *,
        retry: RetryPolicy | None = None,
        replicas: Replicas | None = None,
    ) -> None:
        self._backend = backend
        self._limits = limits
        self._retry = retry or RetryPolicy()
        self._replicas = replicas or Replicas(backend.replicas)
        self._clients: PerLoop[dict[str, Any]] = PerLoop(dict)

    async def prepare(self) -> None:
        """Load the client library now, which takes most of a second."""
        await asyncio.to_thread(importlib.import_module, "openai")

    async def ask(self, request: Request) -> ExpertReply:
        """The reply, after as many tries as the policy allows, each on another replica where there is one.
        Raises ExpertFailure."""
        if len(request.prompt) > _CHARACTERS_PER_TOKEN * self._limits.context_tokens:
            raise ExpertFailure(
                Outcome.TOO_LONG, f"a prompt of {len(request.prompt)} characters was not sent", attempts=0
            )
        payload = self._payload(request)
        tried: list[str] = []
        last: _Failed | None = None
        while True:
            with self._replicas.lease(avoid=tried) as lease:
                if lease is None:
                    why = f"; last: {last.message}" if last else ""
                    raise ExpertFailure(
                        Outcome.UNAVAILABLE, f"no server takes requests now{why}", attempts=len(tried)
                    )
                tried.append(lease.url)
                try:
                    body = await self._try(lease, payload, request.timeout_s)
                except _Failed as failed:
                    lease.alive, last = failed.alive, failed
                else:
                    lease.alive = True
                    return read_reply(body, attempts=len(tried))
            if not last.again or len(tried) >= self._retry.tries:
                raise ExpertFailure(last.outcome, last.message, attempts=len(tried))
            await asyncio.sleep(self._retry.pause(len(tried), last.retry_after_s))

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        for client in (self._clients.pop() or {}).values():
            await client.close()

    async def _try(self, lease: Lease, payload: dict[str, Any], timeout_s: float) -> bytes:
        """The body of one successful response. Raises _Failed."""
        import openai  # takes most of a second, so only when a server is really called

        try:
            # Our own timer: the library's limits are per read, and a server may trickle bytes for ever.
            async with asyncio.timeout(timeout_s):
                client = self._client(lease.url)
                async with client.chat.completions.with_streaming_response.create(**payload) as response:
                    return await self._body(response)
        except _StatusError as error:
            raise _from_status(error, lease.url) from None
        except (TimeoutError, openai.APITimeoutError):
            raise _Failed(
                Outcome.TIMEOUT, f"{lease.url} took longer than {timeout_s:g} s", again=True, alive=False
            ) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            if isinstance(cause, _StatusError):  # some versions of the library wrap what a hook raises
                raise _from_status(cause, lease.url) from None
            raise _Failed(
                Outcome.UNAVAILABLE, f"{lease.url}: {type(cause).__name__}: {cause}", again=True, alive=False
            ) from None
        except _Failed:
            raise
        except Exception as error:  # the library's own, and a connection lost while the body was read
            raise _Failed(
                Outcome.UNAVAILABLE, f"{lease.url}: {type(error).__name__}: {error}", again=True, alive=False
            ) from None

    async def _body(self, response: Any) -> bytes:
        limit = self._limits.max_reply_bytes
        body = bytearray()
        async for chunk in response.iter_bytes():
            body += chunk
            if len(body) > limit:
                raise _Failed(
                    Outcome.TOO_LONG, f"the reply is larger than {limit} bytes", again=False, alive=True
                )
        return bytes(body)

    def _payload(self, request: Request) -> dict[str, Any]:
        pictures = [
            {"type": "image_url", "image_url": {"url": picture.data_url()}} for picture in request.pictures
        ]
        messages: list[dict[str, Any]] = []
        if request.system:
            messages.append({"role": "system", "content": _plain(request.system)})
        words = {"type": "text", "text": _plain(request.prompt)}
        messages.append({"role": "user", "content": [*pictures, words]})
        return {
            "model": self._backend.model,
            "messages": messages,
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "max_tokens": min(request.sampling.max_tokens, self._limits.max_output_tokens),
        }

    def _client(self, url: str) -> Any:
        import openai

        clients = self._clients.get()
        if url not in clients:
            key = self._backend.api_key_env
            if key is not None and not os.environ.get(key):
                raise _Failed(
                    Outcome.UNAVAILABLE,
                    f"no key for {url}: set the environment variable {key}",
                    again=False,
                    alive=None,
                )
            http = openai.DefaultAsyncHttpxClient(event_hooks={"response": [_stop_at_bad_status]})
            clients[url] = openai.AsyncOpenAI(
                base_url=url,
                api_key=os.environ[key] if key else "none",
                max_retries=0,
                timeout=None,
                http_client=http,
            )
        return clients[url]


class _StatusError(Exception):
    """A response with status 400 or above, and the head of its body."""

    def __init__(self, status: int, text: str, retry_after_s: float | None) -> None:
        super().__init__(text)
        self.status, self.text, self.retry_after_s = status, text, retry_after_s


async def _stop_at_bad_status(response: Any) -> None:
    """Called before the library sees the response: it would read an error's body whole, however large."""
    if response.status_code < 400:
        return
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= _ERROR_BYTES:
            break
    try:
        after: float | None = float(response.headers.get("retry-after", ""))
    except ValueError:  # absent, or a date
        after = None
    raise _StatusError(response.status_code, bytes(body[:_ERROR_BYTES]).decode("utf-8", "replace"), after)


def _from_status(error: _StatusError, url: str) -> _Failed:
    status = error.status
    message = f"{url} answered {status}: {' '.join(error.text.split())[:300]}"
    if status == 413 or (status in (400, 422) and _OVERLONG.search(error.text)):
        return _Failed(Outcome.TOO_LONG, message, again=False, alive=True)
    if status == 408:
        return _Failed(Outcome.TIMEOUT, message, again=True, alive=None)
    if status == 429 or status in _NO_ACCESS:
        # Busy or locked, not dead: the replica stays in rotation.
        return _Failed(
            Outcome.UNAVAILABLE, message, again=status == 429, alive=None, retry_after_s=error.retry_after_s
        )
    if retried(status):
        outcome = Outcome.ERROR if status == 500 else Outcome.UNAVAILABLE
        return _Failed(outcome, message, again=True, alive=False, retry_after_s=error.retry_after_s)
    return _Failed(Outcome.REFUSED, message, again=False, alive=True)


def _plain(text: str) -> str:
    return _MARKER.sub(lambda found: f"< {found[1]} >", text)
