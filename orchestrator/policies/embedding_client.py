"""Vectors of texts from any server with `/v1/embeddings`.

The one idea: one request, one deadline, one byte limit; anything that is not one finite vector of the same length for
each text is a failure of the machinery, never a wrong choice. The last vectors are kept, since an expert and a skill
are chosen by the same question.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experts.per_loop import PerLoop
from orchestrator.policies.bounded_client import bounded_client, failure, read_body
from orchestrator.policy import InfrastructureError
from registry.errors import UserFault

MAX_REPLY_BYTES = 16 * 1024 * 1024
_KEPT = 512
_LONGEST = 16_000  # characters of a text that are sent


@dataclass(frozen=True)
class Embedded:
    """A vector for each text; tokens that the server counted (0 for vectors that were kept)."""

    vectors: list[list[float]]
    tokens: int = 0


class EmbeddingClient:
    """url: with or without `/v1`. api_key_env: environment variable that holds the key. timeout_s: for one request.

    Raises UserFault where that variable is not set.
    """

    def __init__(self, url: str, model: str, *, api_key_env: str | None = None, timeout_s: float = 30.0) -> None:
        if api_key_env and not os.environ.get(api_key_env):
            raise UserFault(
                f"the environment variable {api_key_env} is not set", fix="put the embedding server's API key in it"
            )
        base = url.rstrip("/")
        self._url = base if base.endswith("/v1") else f"{base}/v1"
        self._model, self._timeout_s = model, timeout_s
        self._key = os.environ[api_key_env] if api_key_env else "none"
        self._clients: PerLoop[list[Any]] = PerLoop(list)
        self._kept: OrderedDict[str, list[float]] = OrderedDict()

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors in the order of the texts. Raises InfrastructureError."""
        if all(text in self._kept for text in texts):
            return Embedded([self._kept[text] for text in texts])
        where = f"{self._url}/embeddings"
        client = self._client()  # before the timer: the first time a library is imported
        try:
            async with asyncio.timeout(self._timeout_s):
                body = await self._body(client, [text[:_LONGEST] for text in texts])
        except TimeoutError:
            raise InfrastructureError(f"{where}: no reply within {self._timeout_s:g} s") from None
        except Exception as error:  # the library's own, and a connection lost while the body was read
            raise failure(error, where) from None
        made = _read(body, len(texts), where)
        for text, vector in zip(texts, made.vectors, strict=True):
            self._kept[text] = vector
        while len(self._kept) > max(_KEPT, len(texts)):
            self._kept.popitem(last=False)
        return made

    async def aclose(self) -> None:
        """Closes the running loop's connections."""
        for client in self._clients.pop() or []:
            await client.close()

    def _client(self) -> Any:
        """The client of the running event loop."""
        if not (kept := self._clients.get()):
            kept.append(bounded_client(self._url, self._key))
        return kept[0]

    async def _body(self, client: Any, texts: list[str]) -> bytes:
        create = client.embeddings.with_streaming_response.create
        async with create(model=self._model, input=texts, encoding_format="float") as response:
            return await read_body(response, MAX_REPLY_BYTES, self._url)


def _read(body: bytes, wanted: int, where: str) -> Embedded:
    try:
        document = json.loads(body)
        entries = sorted(document["data"], key=lambda entry: int(entry["index"]))
        vectors = [[float(value) for value in entry["embedding"]] for entry in entries]
        tokens = (document.get("usage") or {}).get("prompt_tokens")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        start = body[:120].decode("utf-8", "replace")
        raise InfrastructureError(f"{where}: the reply holds no vectors ({type(error).__name__}): {start!r}") from None
    lengths = {len(vector) for vector in vectors}
    if len(vectors) != wanted or len(lengths) != 1 or lengths == {0}:
        raise InfrastructureError(f"{where}: {len(vectors)} vectors of lengths {sorted(lengths)} for {wanted} texts")
    if not all(math.isfinite(value) for vector in vectors for value in vector):
        raise InfrastructureError(f"{where}: a vector holds a value that is no number")
    return Embedded(vectors, tokens if isinstance(tokens, int) and tokens > 0 else 0)
