"""`data:` URLs: the one encoder and the one strict decoder.

What the head claims about the content is not believed: whoever decodes looks at the bytes.
"""

from __future__ import annotations

import base64
import binascii
import re

from experts.image_limits import ImageFault

_HEAD = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_PASTED = re.compile(r"data:image/[\w.+-]{1,40};base64,|[A-Za-z0-9+/]{512}")


def encode_data_url(png: bytes) -> str:
    """PNG bytes as a data URL."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def decode_data_url(url: str, *, max_bytes: int, where: str | None = None) -> bytes:
    """The bytes in a base64 data URL. Line breaks inside are fine; a second head, a wrong alphabet or a wrong
    padding are not. Raises ImageFault."""
    head = _HEAD.match(url)
    if head is None:
        raise ImageFault(
            f"not a base64 data URL: {shorten(url)}",
            where=where,
            fix="write data:image/png;base64,<base64 text>",
        )
    body = url[head.end() :]
    if len(body) > max_bytes * 3 // 2 + 1024:  # 4/3 for base64, the rest for line breaks
        what = f"data URL is larger than the limit of {max_bytes} bytes"
        raise ImageFault(what, where=where, fix="scale the image down")
    body = _SPACE.sub("", body)
    if _HEAD.match(body):
        raise ImageFault("data URL has its head twice", where=where, fix="keep one data:image/...;base64, head")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        fix = "encode the whole file in base64 again"
        raise ImageFault(f"data URL is not valid base64: {error}", where=where, fix=fix) from None


def holds_image_data(text: str) -> bool:
    """True when image data was pasted into what should be words."""
    return _PASTED.search(text) is not None


def shorten(text: str, limit: int = 80) -> str:
    """`text` in quotes, cut for an error message."""
    return repr(text if len(text) <= limit else text[:limit] + "...")
