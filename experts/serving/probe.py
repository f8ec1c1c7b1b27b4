"""Asking a server whether it does its work: health, the models it names, and one real question.

The one idea: a server is ready when it has answered a request with a picture under the name that requests
will use. Everything it says is foreign text: bounded, and cut before it is shown.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from experts.data_url import encode_data_url
from experts.serving.model import ServedModel

if TYPE_CHECKING:
    import httpx

_MOST_BYTES = 1_000_000
_LONGEST_VERSION = 60
_WORDS = "Which colour is this? Answer with one word."
_METRIC = re.compile(r"vllm:num_requests_(running|waiting)(?:\{.*\})? (\S+)")


class ProbeFault(Exception):
    """A server did not do what it should. `final`: waiting or restarting would not help."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class WrongModel(ProbeFault):
    """A server is there but serves something else."""


class Probe:
    """Requests to servers; `base` is a server's address without `/v1`. Close it with `aclose`."""

    def __init__(self) -> None:
        import httpx

        # No proxy of the environment stands between this machine and its own servers.
        self._http = httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))

    async def aclose(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def healthy(self, url: str, timeout_s: float = 5.0) -> bool:
        """Whether that address says 200 within that time."""
        try:
            return (await self._get(url, timeout_s))[0] == 200
        except ProbeFault:
            return False

    async def model_names(self, base: str, model: ServedModel, timeout_s: float = 10.0) -> list[str]:
        """The names in /v1/models. Raises ProbeFault."""
        status, body = await self._get(f"{base}/v1/models", timeout_s, _headers(model))
        names = [entry.get("id") for entry in _list(body, "data") if isinstance(entry, dict)]
        if status != 200:
            raise ProbeFault(f"{base}/v1/models answers {status}")
        return [name for name in names if isinstance(name, str)]

    async def check_name(self, base: str, model: ServedModel) -> None:
        """Raises ProbeFault when the server does not serve that model."""
        names = await self.model_names(base, model)
        if model.id not in names:
            there = ", ".join(shown(name, 80) for name in names[:5]) or "none"
            raise WrongModel(f"the server at {base} serves {there}, not {model.id!r}")

    async def ask(self, base: str, model: ServedModel, timeout_s: float) -> float:
        """One short question with a generated picture; seconds until the answer. Raises ProbeFault."""
        content: list[dict[str, Any]] = [{"type": "text", "text": _WORDS}]
        if model.max_images:
            content.insert(0, {"type": "image_url", "image_url": {"url": _picture()}})
        question = {
            "model": model.id,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": 4,
            "temperature": 0,
        }
        started = time.monotonic()
        request = self._http.build_request(
            "POST", f"{base}/v1/chat/completions", json=question, headers=_headers(model), timeout=timeout_s
        )
        status, body = await self._send(request, timeout_s)
        if status != 200:
            final = status in (400, 401, 403, 404, 413, 422)
            said = body if isinstance(body, str) else _message(body)
            raise ProbeFault(f"a question with a picture is answered {status}: {shown(said)}", final=final)
        if not _list(body, "choices"):
            raise ProbeFault(f"a question with a picture gets no completion: {shown(str(body))}")
        return time.monotonic() - started

    async def queue(self, base: str, timeout_s: float = 5.0) -> tuple[int, int] | None:
        """Requests (running, waiting) as vLLM counts them; None when the server does not say."""
        try:
            status, body = await self._get(f"{base}/metrics", timeout_s)
        except ProbeFault:
            return None
        counts: dict[str, float] = {}
        for line in str(body).splitlines() if status == 200 else ():
            found = _METRIC.fullmatch(line.strip())
            if found:
                try:
                    counts[found[1]] = counts.get(found[1], 0.0) + float(found[2])
                except ValueError:
                    return None
        return (int(counts["running"]), int(counts["waiting"])) if len(counts) == 2 else None

    async def version(self, base: str, timeout_s: float = 5.0) -> str | None:
        """What vLLM says at /version, which wants no key; None when the server does not say. Raises nothing."""
        try:
            status, body = await self._get(f"{base}/version", timeout_s)
        except Exception:  # never a reason to fail, whatever address a registry holds
            return None
        said = body.get("version") if status == 200 and isinstance(body, dict) else None
        return shown(said, _LONGEST_VERSION) or None if isinstance(said, str) else None

    async def _get(self, url: str, timeout_s: float, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        return await self._send(self._http.build_request("GET", url, headers=headers, timeout=timeout_s), timeout_s)

    async def _send(self, request: httpx.Request, timeout_s: float) -> tuple[int, Any]:
        """(status, body as JSON where it is that, else as text)."""
        import httpx

        body = bytearray()
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._http.send(request, stream=True)
                try:
                    async for chunk in response.aiter_bytes():
                        body += chunk
                        if len(body) > _MOST_BYTES:
                            raise ProbeFault(f"{request.url} answers with more than {_MOST_BYTES} bytes")
                finally:
                    await response.aclose()
        except TimeoutError:
            raise ProbeFault(f"{request.url} does not answer within {timeout_s:g} s") from None
        except (httpx.HTTPError, OSError) as error:
            raise ProbeFault(f"{request.url}: {type(error).__name__}: {shown(str(error))}") from None
        text = body.decode("utf-8", "replace")
        try:
            return response.status_code, json.loads(text)
        except (ValueError, RecursionError):
            return response.status_code, text


def shown(text: str, longest: int = 300) -> str:
    """Foreign text for one line of a message."""
    words = "".join(char if char.isprintable() else " " for char in text)
    words = " ".join(words.split())
    return words if len(words) <= longest else words[:longest] + "..."


def _headers(model: ServedModel) -> dict[str, str]:
    key = os.environ.get(model.api_key_env, "") if model.api_key_env else ""
    return {"Authorization": f"Bearer {key}"} if key else {}


def _list(body: Any, name: str) -> list[Any]:
    found = body.get(name) if isinstance(body, dict) else None
    return found if isinstance(found, list) else []


def _message(body: Any) -> str:
    error = body.get("error") if isinstance(body, dict) else None
    return str(error.get("message", error) if isinstance(error, dict) else body)


@cache
def _picture() -> str:
    from PIL import Image

    from experts.images import load_picture

    return encode_data_url(load_picture(Image.new("RGB", (64, 64), (200, 30, 30))).png)
