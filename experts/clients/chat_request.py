"""Writing a chat completion request: the bytes of its body, made once for all tries.

A picture's part of the body is by far the longest and the same in every question about that picture, so it is
kept; the rest is small.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from typing import Any

from experts.images import Picture
from experts.request import Request
from registry.markers import CHAT_NAMES, INSTRUCTION_NAMES

_KEPT_BYTES = 64 * 1024 * 1024
# Words in a prompt must not act as a chat marker or an image placeholder of the model behind the server.
_MARKER = re.compile(
    rf"[<＜]([|｜][^|｜<>\s]{{1,40}}[|｜]|/?(?:{CHAT_NAMES}))[>＞]|\[(/?(?:{INSTRUCTION_NAMES}))\]", re.IGNORECASE
)


class PictureParts:
    """Pictures as parts of a request's JSON, the most recently used up to `max_bytes` kept; thread-safe."""

    def __init__(self, max_bytes: int = _KEPT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._used = 0
        self._lock = threading.Lock()

    def part(self, picture: Picture) -> bytes:
        """`{"type": "image_url", ...}` with the picture as a data URL."""
        with self._lock:
            found = self._kept.get(picture.sha256)
            if found is not None:
                self._kept.move_to_end(picture.sha256)
                return found
        # Nothing in a base64 URL needs escaping, and looking for it in megabytes would hold up all other calls.
        made = b'{"type":"image_url","image_url":{"url":"%b"}}' % picture.data_url().encode("ascii")
        with self._lock:
            if picture.sha256 not in self._kept:
                self._kept[picture.sha256] = made
                self._used += len(made)
            while self._used > self._max_bytes:
                self._used -= len(self._kept.popitem(last=False)[1])
        return made


PARTS = PictureParts()  # shared by all experts: they are asked about the same pictures


def write_request(request: Request, model: str, max_output_tokens: int, parts: PictureParts = PARTS) -> bytes:
    """The body of a request to `model` for at most `max_output_tokens` tokens (at least 1)."""
    words = _json({"type": "text", "text": _plain(request.prompt)})
    content = b",".join([*map(parts.part, request.pictures), words])
    messages = [b'{"role":"user","content":[' + content + b"]}"]
    if request.system:
        messages.insert(0, _json({"role": "system", "content": _plain(request.system)}))
    settings = {
        "model": model,
        "temperature": request.sampling.temperature,
        "top_p": request.sampling.top_p,
        "max_tokens": max(1, min(request.sampling.max_tokens, max_output_tokens)),
    }
    return _json(settings)[:-1] + b',"messages":[' + b",".join(messages) + b"]}"


def _plain(text: str) -> str:
    whole = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates break servers
    return _MARKER.sub(lambda found: f"< {found[1]} >" if found[1] else f"[ {found[2]} ]", whole)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
