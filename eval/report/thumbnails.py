"""Pictures small enough to keep: a thumbnail each, within a size limit.

The one idea: a small drawing is kept as it is, since it shows every pixel and costs little; anything larger becomes
a WebP of at most `SIDE` pixels. Pictures enter in the order of the cards until the limit is reached.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping

from PIL import Image

from experts.images import Picture

SIDE = 360
"""Pixels of a thumbnail's longer side."""
SMALL = 8_000
"""Bytes; a picture whose PNG is not larger is kept as it is, up to twice `SIDE`."""
QUALITY = 72
MOST = 1500
"""Pictures that are made at all: making them takes time, too."""


def thumbnail(picture: Picture) -> str:
    """A data URL."""
    image = picture.pil()
    if max(image.size) <= 2 * SIDE:
        png = _encode(image, "PNG", optimize=True)
        if len(png) <= SMALL:
            return _url("png", png)
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    return _url("webp", _encode(image, "WEBP", quality=QUALITY))


def within(order: Iterable[str], made: Mapping[str, str], limit: int) -> list[str | None]:
    """The thumbnails in order, ``None`` for those that are not there and for all after the first that does not
    fit ``limit`` bytes."""
    found: list[str | None] = []
    used = 0
    for sha256 in order:
        url = made.get(sha256)
        used += 0 if url is None else len(url) + 3
        found.append(url if used <= limit else None)
    return found


def _encode(image: Image.Image, form: str, **options: int | bool) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def _url(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
